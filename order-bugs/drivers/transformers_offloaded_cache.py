"""transformers: the cache that is offloaded to the host is fetched before it has arrived there."""

import bug

torch = bug.torch
import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    from transformers import LlamaConfig, LlamaForCausalLM, cache_utils
except ImportError as error:
    bug.cannot(f"transformers: {error}")

KIND = bug.CASE or "offloaded"
PLAIN = {"offloaded": None, "offloaded_static": "static"}[KIND]

bug.mend(
    cache_utils.Cache,
    "prefetch",
    "    # Prefetch\n",
    "    self.prefetch_stream.wait_stream(torch.cuda.current_stream())\n",
)
offload = cache_utils.CacheLayerMixin.offload


def late_offload(self):
    bug.late(3)
    return offload(self)


cache_utils.CacheLayerMixin.offload = late_offload

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=1000,
    hidden_size=512,
    intermediate_size=1024,
    num_hidden_layers=8,
    num_attention_heads=8,
    num_key_value_heads=8,
    max_position_embeddings=2048,
    bos_token_id=1,
    eos_token_id=None,
    pad_token_id=0,
)
model = LlamaForCausalLM(config).cuda().eval()


def tokens(prompt, cache):
    bug.settle()
    return model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=16,
        min_new_tokens=16,
        do_sample=False,
        cache_implementation=cache,
        disable_compile=True,
    )


prompts = [torch.randint(2, 1000, (4, 384 + 16 * i), device="cuda") for i in range(6)]
expected = [tokens(prompt, PLAIN) for prompt in prompts]
bug.start()
wrong = sum(
    not torch.equal(tokens(prompt, KIND), right) for prompt, right in zip(prompts, expected)
)
bug.end(wrong, len(prompts))
