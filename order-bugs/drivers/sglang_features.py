"""SGLang: the features of pictures are copied to the host, and nothing waits until they are read."""

import types

import bug

torch = bug.torch
path = bug.source("unpacked", "sglang-0.5.7", "sglang/srt/managers/schedule_batch.py")
yes, no = types.SimpleNamespace(get=lambda: 64), types.SimpleNamespace(get=lambda: 0)
scope = {
    "torch": torch,
    "envs": types.SimpleNamespace(SGLANG_ENABLE_MM_SPLITTING=no, SGLANG_MM_BUFFER_SIZE_MB=yes),
}
from_dict = bug.definition(
    path,
    "MultimodalInputs.from_dict",
    scope,
    'item.feature.to("cpu", non_blocking=True)',
    'item.feature.to("cpu")',
)
scope["MultimodalInputs"] = types.SimpleNamespace
import sys

for name in ("sglang", "sglang.srt", "sglang.srt.managers"):
    sys.modules[name] = types.ModuleType(name)
utilities = types.ModuleType("sglang.srt.managers.mm_utils")
utilities.init_feature_buffer = lambda device: None
utilities.is_feature_buffer_initialized = lambda: True
utilities.reset_buffer_offset = lambda: None
utilities.try_add_to_buffer = lambda feature: feature
sys.modules[utilities.__name__] = utilities
ROUNDS, SIZE = 12, 1 << 22
bug.busy(1)
bug.start()
wrong = 0
for i in range(1, ROUNDS + 1):
    item = types.SimpleNamespace(
        feature=torch.full((SIZE,), float(i), device="cuda"),
        is_valid=lambda: True,
        set_pad_value=lambda: None,
    )
    bug.settle()
    bug.busy(1)
    bug.late(3)
    inputs = from_dict({"mm_items": [item]})
    wrong += not bool((inputs.mm_items[0].feature == i).all())
    bug.settle()
bug.end(wrong, ROUNDS)
