"""Megatron-LM: one pinned buffer is filled again for the next step while its copy may wait."""

import types

import bug

torch = bug.torch
FAULTY = "3927d9b961824892b45b9f6e497ef0ff770ce495"
MENDED = "53a2dd56fec6bd0938bedf0207cce052944f3bcf"
path = bug.source(
    "NVIDIA+Megatron-LM",
    MENDED if bug.MENDED else FAULTY,
    "megatron/core/inference/contexts/dynamic_context.py",
)
transfer = bug.definition(
    path, "DynamicInferenceContext.transfer_bookkeeping_to_gpu", {"torch": torch}
)
REQUESTS, STEPS = 4096, 24
NAMES = (
    "request_in_prefill_status",
    "request_query_lengths",
    "request_kv_length_offsets",
    "temperature",
    "top_k",
    "top_p",
)
host = torch.zeros(REQUESTS * len(NAMES) + 1, dtype=torch.int32).pin_memory()
card = torch.zeros_like(host, device="cuda")
context = types.SimpleNamespace(
    total_request_count=REQUESTS,
    paused_request_count=0,
    padded_active_request_count=REQUESTS,
    request_in_prefill_status_tensor=torch.zeros(REQUESTS, dtype=torch.int32),
    request_query_lengths=torch.zeros(REQUESTS, dtype=torch.int32),
    request_kv_length_offsets=torch.zeros(REQUESTS, dtype=torch.int32),
    active_request_metadata={
        name: torch.zeros(REQUESTS, dtype=torch.int32) for name in NAMES[3:]
    },
    _bookkeeping_no_real_work=False,
    batch_dimensions=types.SimpleNamespace(token_count=0),
    _staging_real_token_count=host[-1:],
    gpu_view=types.SimpleNamespace(_buf=card),
    _cpu_bookkeeping_buf=host,
    _pending_mamba_transfer=None,
)
for i, name in enumerate(NAMES):
    setattr(context, f"_staging_{name}", host[i * REQUESTS : (i + 1) * REQUESTS])
bug.busy(1)
card.clone()
bug.start()
seen = []
for step in range(1, STEPS + 1):
    context.request_in_prefill_status_tensor.fill_(step)
    context.request_query_lengths.fill_(step)
    context.request_kv_length_offsets.fill_(step)
    for metadata in context.active_request_metadata.values():
        metadata.fill_(step)
    context.batch_dimensions.token_count = step
    # The forward pass of the step before.
    bug.busy(1)
    bug.late(2)
    transfer(context)
    seen.append(card.clone())
bug.settle()
wrong = sum(not bool((one == step + 1).all()) for step, one in enumerate(seen))
bug.end(wrong, STEPS)
