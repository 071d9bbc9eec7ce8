"""torchvision: deform_conv2d launches kernels in the default stream, whatever the current one is."""

import bug

torch = bug.torch
try:
    import torchvision
except ImportError as error:
    bug.cannot(str(error))

ROUNDS = 10
side = torch.cuda.Stream()
torch.manual_seed(0)
source = torch.randn(4, 8, 64, 64, device="cuda")
weight = torch.randn(8, 8, 3, 3, device="cuda")
offset = torch.zeros(4, 18, 62, 62, device="cuda")
x = torch.zeros_like(source)
default = torch.cuda.default_stream()


def convolve():
    if not bug.MENDED:
        return torchvision.ops.deform_conv2d(x, offset, weight)
    # All of it in the stream that its kernels use.
    default.wait_stream(side)
    with torch.cuda.stream(default):
        y = torchvision.ops.deform_conv2d(x, offset, weight)
    side.wait_stream(default)
    return y


expected = torchvision.ops.deform_conv2d(source, offset, weight)
bug.busy(1)
with torch.cuda.stream(side):
    bug.busy(1)
bug.start()
wrong = 0
for _ in range(ROUNDS):
    x.zero_()
    bug.settle()
    with torch.cuda.stream(side):
        bug.busy(2)
        bug.late()
        x.copy_(source)
        y = convolve()
    bug.settle()
    wrong += not torch.allclose(y, expected, atol=1e-3)
bug.end(wrong, ROUNDS)
