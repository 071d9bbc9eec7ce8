"""RamTorch: gradients are accumulated on the host before their copies have arrived."""

import bug

torch = bug.torch
COMMIT = "848c53db994368cd74b864757a462ceec4c407b3"
path = bug.source("lodestone-rock+RamTorch", COMMIT, "ramtorch/modules/linear.py")
modules = bug.load(path, "ramtorch_linear")
device = torch.device("cuda", 0)
if bug.MENDED:
    plain = modules.BouncingLinearFn.backward

    def waiting(ctx, gradient):
        gradients = plain(ctx, gradient)
        state = modules._get_device_state(device)
        state["transfer_weight_backward_finished_event"].synchronize()
        return gradients

    modules.BouncingLinearFn.backward = staticmethod(waiting)

SIZE, ROUNDS = 2048, 8
torch.manual_seed(0)
weight = torch.nn.Parameter(torch.randn(SIZE, SIZE).pin_memory())
bias = torch.nn.Parameter(torch.randn(SIZE).pin_memory())
x = torch.randn(256, SIZE, device=device, requires_grad=True)
bug.busy(1)


def backward(scale):
    out = modules.BouncingLinearFn.apply(x * scale, weight, bias, device)
    bug.settle()
    bug.busy(1)
    bug.late(5)
    out.sum().backward()
    bug.settle()


backward(1.0)
one = weight.grad.clone()
bug.start()
wrong = 0
for i in range(ROUNDS):
    weight.grad = bias.grad = None
    backward(1.0)
    # Into a gradient that is there; other numbers than those that the memory may still have.
    backward(2.0 + i)
    wrong += not torch.allclose(weight.grad, one * (3.0 + i), rtol=1e-3, atol=1e-2)
bug.end(wrong, ROUNDS)
