"""ai-toolkit: quantized buffers that the backward pass reads are freed for the next uploads."""

import types

import bug

torch = bug.torch
FAULTY = "f4e91305471a3727d52886ef6d410eb570cd484f"
MENDED = "d184c6c6221e8f88c73334f912ac8aeca2afdfa4"
path = bug.source(
    "ostris+ai-toolkit",
    MENDED if bug.MENDED else FAULTY,
    "toolkit/memory_management/manager_modules.py",
)
modules = bug.load(path, "manager_modules")
SIZE, LAYERS, STEPS = 1 << 22, 6, 8
device = torch.device("cuda", 0)


class Scale(torch.nn.Module):
    """A layer whose backward pass reads a buffer, as those of its quantizer do."""

    def __init__(self, value):
        super().__init__()
        self.register_buffer("scale", torch.full((SIZE,), value))

    def forward(self, x):
        return x * self.scale


layers = [Scale(1.0 + 0.25 * i) for i in range(LAYERS)]
product = 1.0
for i in range(LAYERS):
    product *= 1.0 + 0.25 * i
for layer in layers:
    modules.OstrisLinearLayerMemoryManager(layer, types.SimpleNamespace(process_device=device))


def slow(_):
    bug.busy(2)
    bug.late(3)


bug.busy(1)
inputs = [torch.ones(SIZE, device=device, requires_grad=True) for _ in range(STEPS)]
bug.start()
for step, x in enumerate(inputs):
    h = x
    # In turn, so that memory comes back with other numbers.
    for layer in layers if step % 2 else reversed(layers):
        h = layer(h)
        h.register_hook(slow)
    h.sum().backward()
bug.settle()
wrong = sum(not torch.allclose(x.grad, torch.full_like(x, product)) for x in inputs)
bug.end(wrong, STEPS)
