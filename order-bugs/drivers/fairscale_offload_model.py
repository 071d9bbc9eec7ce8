"""fairscale: OffloadModel computes with weights that its copies may not have brought yet."""

import copy
import warnings

import bug

torch = bug.torch
warnings.simplefilter("ignore")
COMMIT = "146f160241651e1211c4247979f159a4ef43b54a"
offload = bug.load(
    bug.source("facebookresearch+fairscale", COMMIT, "fairscale/experimental/nn/offload.py"),
    "fairscale_offload",
)


def ordered(name, stream):
    """The method's copies come after the work that was submitted, and later work after them."""
    method = getattr(offload.ModelShard, name)

    def move(self, *arguments, **rest):
        if bug.MENDED:
            getattr(self, stream).wait_stream(torch.cuda.current_stream())
        if name == "forward_load":
            with torch.cuda.stream(getattr(self, stream)):
                bug.late(5)
        method(self, *arguments, **rest)
        if bug.MENDED:
            torch.cuda.current_stream().wait_stream(getattr(self, stream))

    setattr(offload.ModelShard, name, move)


ordered("forward_load", "_cpu_to_gpu_stream")
ordered("forward_drop", "_gpu_to_cpu_stream")

torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(6)])
x = torch.randn(64, 2048, device="cuda")
with torch.no_grad():
    expected = copy.deepcopy(model).cuda()(x)
offloaded = offload.OffloadModel(model, torch.device("cuda"), num_slices=3)
ROUNDS, wrong = 6, 0
bug.start()
with torch.no_grad():
    for _ in range(ROUNDS):
        result = offloaded(x)
        bug.settle()
        wrong += not torch.allclose(result, expected, atol=1e-3)
bug.end(wrong, ROUNDS)
