"""ai-toolkit: gradients are accumulated on the host before their copies have arrived."""

import bug

torch = bug.torch
FAULTY = "817f3dcbcb357a2f79d38c542ccdc179c365ed8b"
MENDED = "f4e91305471a3727d52886ef6d410eb570cd484f"
path = bug.source(
    "ostris+ai-toolkit",
    MENDED if bug.MENDED else FAULTY,
    "toolkit/memory_management/manager_modules.py",
)
modules = bug.load(path, "manager_modules")
SIZE, ROUNDS = 2048, 8
device = torch.device("cuda", 0)
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(SIZE, SIZE).pin_memory())
x = torch.randn(256, SIZE, device=device, requires_grad=True)
bug.busy(1)


def backward(scale):
    out = modules._BouncingLinearFn.apply(x * scale, weight, None, device)
    bug.settle()
    bug.busy(1)
    bug.late(5)
    out.sum().backward()


backward(1.0)
bug.settle()
one = weight.grad.clone()
bug.start()
wrong = 0
for i in range(ROUNDS):
    weight.grad = None
    backward(1.0)
    bug.settle()
    # Into a gradient that is there; other numbers than those that the memory may still have.
    backward(2.0 + i)
    bug.settle()
    wrong += not torch.allclose(weight.grad, one * (3.0 + i), rtol=1e-3, atol=1e-2)
bug.end(wrong, ROUNDS)
