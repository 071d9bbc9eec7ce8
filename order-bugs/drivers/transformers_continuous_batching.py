"""transformers, continuous batching: static inputs are reset in a stream that nothing waits for."""

import os

import bug

torch = bug.torch
os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
    from transformers.generation.configuration_utils import ContinuousBatchingConfig
    from transformers.generation.continuous_batching import input_outputs
except ImportError as error:
    bug.cannot(f"transformers: {error}")

IOs = input_outputs.ContinuousBatchingIOs
reset = IOs._reset_static_tensors
ordered, hold = True, 0


def late_reset(self, *arguments, **rest):
    if self.device.type == "cuda":
        if ordered:
            bug.settle()
        elif hold:
            bug.late(hold)
    reset(self, *arguments, **rest)
    if ordered and self.device.type == "cuda":
        bug.settle()


IOs._reset_static_tensors = late_reset
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
model.set_attn_implementation("paged|sdpa")
prompts = [torch.randint(2, 1000, (12 + i,)).tolist() for i in range(4)]


def generated():
    results = model.generate_batch(
        prompts,
        generation_config=GenerationConfig(
            do_sample=False, max_new_tokens=48, eos_token_id=-1, pad_token_id=0
        ),
        continuous_batching_config=ContinuousBatchingConfig(
            block_size=32,
            num_blocks=32,
            max_batch_tokens=64,
            max_requests_per_batch=8,
            use_async_batching=True,
            use_cuda_graph=False,
            allow_block_sharing=False,
        ),
        warmup=False,
    )
    tokens = [result.generated_tokens for result in results.values()]
    if len(tokens) != len(prompts) or not all(tokens):
        bug.cannot("generate_batch gave no tokens")
    return tokens


expected = generated()
ordered = bug.MENDED
ROUNDS, wrong = 4, 0
bug.start()
for i in range(ROUNDS):
    hold = 60 + 40 * i
    wrong += generated() != expected
bug.end(wrong, ROUNDS)
