"""trl, offloading of activations: two races of one report (7195).

--case stream: it waits for the default stream, though the caller uses another one.
--case clone: the backward pass reads a copy that the transfer stream still makes.
"""

import bug

torch = bug.torch
version = "1.14.2" if bug.MENDED else "1.13.0"
try:
    offloading = bug.load(
        bug.source("unpacked", f"trl-{version}", "trl/models/activation_offloading.py"),
        "trl_offloading",
    )
except ImportError as error:
    bug.cannot(str(error))

SIZE, LAYERS, ROUNDS = 1 << 22, 8, 8
torch.manual_seed(0)
weights = [torch.randn(SIZE, device="cuda", requires_grad=True) for _ in range(LAYERS)]
x = torch.randn(SIZE, device="cuda", requires_grad=True)


def through_layers():
    h = x
    for weight in weights:
        bug.busy(1)
        bug.late(3)
        h = torch.sin(h * weight)
    return h.sum()


def of_a_part():
    both = torch.cat([x, x * 2])
    return torch.sin(both[SIZE:]).sum()


if bug.CASE == "clone":
    step, tensors, stream = of_a_part, [x], torch.cuda.default_stream()
    if bug.DELAY:
        clone = torch.Tensor.clone

        def late_clone(self, *arguments, **rest):
            if bug.current() != torch.cuda.default_stream():
                bug.late(30)
            return clone(self, *arguments, **rest)

        torch.Tensor.clone = late_clone
else:
    step, tensors, stream = through_layers, [x, *weights], torch.cuda.Stream()


def gradients():
    bug.settle()
    found = [tensor.grad.detach().cpu() for tensor in tensors]
    for tensor in tensors:
        tensor.grad = None
    return found


bug.busy(1)
with torch.cuda.stream(stream):
    bug.busy(1)
    step().backward()
expected = gradients()
bug.start()
wrong = 0
for _ in range(ROUNDS):
    with torch.cuda.stream(stream):
        with offloading.OffloadActivations(use_streams=True):
            # Both passes, as trl's trainers have it.
            step().backward()
    found = gradients()
    wrong += not all(torch.equal(one, other) for one, other in zip(found, expected))
bug.end(wrong, ROUNDS)
