"""torchtune: a restored activation that is also a gradient is freed while kernels read it."""

import sys
import types

import bug

torch = bug.torch


def stub(name, **parts):
    module = types.ModuleType(name)
    for part, value in parts.items():
        setattr(module, part, value)
    sys.modules[name] = module
    return module


class Absent:
    """In place of classes of packages that this file imports and does not need here."""


stub("torchao", __version__="0.6.0")
stub("torchao.dtypes")
stub("torchao.dtypes.nf4tensor", NF4Tensor=Absent)
stub("torchtune")
stub("torchtune.modules", TiedLinear=Absent)
stub("torchtune.utils", get_logger=lambda level: None)
try:
    import psutil
except ImportError:
    psutil = stub("psutil", virtual_memory=lambda: types.SimpleNamespace(percent=1.0))

version = "0.4.0" if bug.MENDED else "0.3.1"
path = bug.source(
    "unpacked", f"torchtune-{version}", "torchtune/training/_activation_offloading.py"
)
offloading = bug.load(path, "torchtune_offloading")


class Kept(torch.autograd.Function):
    """Computes its gradient in the forward pass, as fused losses do."""

    @staticmethod
    def forward(ctx, x, gradient):
        ctx.save_for_backward(gradient)
        return x.clone()

    @staticmethod
    def backward(ctx, _):
        return ctx.saved_tensors[0], None


SIZE, LAYERS, ROUNDS = 1 << 22, 6, 6
torch.manual_seed(0)
x = torch.randn(SIZE, device="cuda", requires_grad=True)
weights = [torch.randn(SIZE, device="cuda", requires_grad=True) for _ in range(LAYERS + 1)]


def slow(_):
    bug.busy(2)
    bug.late(3)


def step():
    h = x
    for weight in weights[:-1]:
        h = h * weight
        h.register_hook(slow)
    h = Kept.apply(h, h * 0.5)
    return (h * weights[-1]).sum()


def gradients():
    return [tensor.grad.clone() for tensor in [x, *weights]]


step().backward()
expected = gradients()
bug.start()
wrong = 0
for _ in range(ROUNDS):
    for tensor in [x, *weights]:
        tensor.grad = None
    with offloading.OffloadActivations(use_streams=True, max_fwd_stash_size=1):
        loss = step()
    loss.backward()
    bug.settle()
    wrong += not all(torch.equal(one, other) for one, other in zip(gradients(), expected))
bug.end(wrong, ROUNDS)
