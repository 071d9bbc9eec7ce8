"""diffusers, group offloading.

--case record: `record_stream` names the stream that copies itself (12721).
--case disk: weights are freed while kernels read them (14657).
--case onload: nothing waits for the copies of a group that loads itself (13502).
"""

import logging
import sys
import tempfile
import types

import bug

torch = bug.torch
CASE = bug.CASE or "record"
VERSIONS = {
    "record": ("b71269675ec1b85193107a691dd35c308e46f0a5", "9380e58821092ad05e618fa8a259030136ba43c0"),
    "disk": ("0.40.0", "0.41.0"),
    "onload": ("0.41.0", "0.41.0"),
}
version = VERSIONS[CASE][bug.MENDED]
if CASE == "record":
    folder = bug.source("huggingface+diffusers", version, "src/diffusers")
else:
    folder = bug.source("unpacked", f"diffusers-{version}", "diffusers")


def stub(name, **parts):
    module = types.ModuleType(name)
    for part, value in parts.items():
        setattr(module, part, value)
    sys.modules[name] = module
    return module


# The package without what these two files do not need.
stub("diffusers").__path__ = [folder]
stub(
    "diffusers.utils",
    get_logger=logging.getLogger,
    is_accelerate_available=lambda: True,
    is_torchao_available=lambda: False,
)
stub("diffusers.utils.logging", get_logger=logging.getLogger)
stub(
    "diffusers.utils.torch_utils",
    unwrap_module=lambda module: module,
    TorchDeviceBackend=lambda device: torch.cuda,
)
stub("diffusers.hooks").__path__ = [f"{folder}/hooks"]
stub("diffusers.hooks._common", _GO_LC_SUPPORTED_PYTORCH_LAYERS=(torch.nn.Linear,))
try:
    from diffusers.hooks import group_offloading
except ImportError as error:
    bug.cannot(f"diffusers: {error}")

# Only one error at a time: in the other cases the host waits for what was loaded.
onload = group_offloading.ModuleGroup.onload_


def waiting(self):
    if CASE == "onload" and self.stream is not None:
        with torch.cuda.stream(self.stream):
            bug.late(3)
    onload(self)
    if self.stream is not None and CASE != "onload":
        self.stream.synchronize()
    elif self.stream is not None and bug.MENDED:
        torch.cuda.current_stream().wait_stream(self.stream)


group_offloading.ModuleGroup.onload_ = waiting


class Model(torch.nn.Module):
    def __init__(self, size=2048, layers=8):
        super().__init__()
        for i in range(layers):
            setattr(self, f"layer{i}", torch.nn.Linear(size, size, bias=False))
        self.layers = layers

    def forward(self, x):
        if CASE != "onload":
            bug.busy(4)
            bug.late(250 if CASE == "disk" else 30)
        for i in range(self.layers):
            x = getattr(self, f"layer{i}")(x)
        return x


torch.manual_seed(0)
model = Model()
x = torch.randn(2048, 2048, device="cuda")
ROUNDS, wrong = 6, 0
with torch.no_grad(), tempfile.TemporaryDirectory() as disk:
    expected = model.cuda()(x)
    bug.settle()
    model.cpu()
    scale = float(expected.abs().max())

    def offloaded():
        group_offloading.apply_group_offloading(
            model,
            onload_device=torch.device("cuda"),
            offload_device=torch.device("cpu"),
            offload_type="leaf_level",
            use_stream=True,
            record_stream=CASE == "record",
            offload_to_disk_path=disk if CASE == "disk" else None,
        )

    if CASE != "onload":
        offloaded()
        # The first pass finds out the order of the layers.
        model(x)
        bug.settle()
    bug.start()
    for i in range(ROUNDS):
        if CASE == "onload":
            torch.manual_seed(0)
            model = Model()
            offloaded()
        result = model(x)
        bug.settle()
        wrong += not torch.allclose(result, expected, atol=1e-3 * scale)
bug.end(wrong, ROUNDS)
