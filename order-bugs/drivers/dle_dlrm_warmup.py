"""NVIDIA's DeepLearningExamples, DLRM: warm-up steps of a graph do not wait for the weights' update."""

import bug

torch = bug.torch
path = bug.source(
    "NVIDIA+DeepLearningExamples",
    "729963dd47e7c8bd462ad10bfac7a7b0b604e6dd",
    "PyTorch/Recommendation/DLRM/dlrm/scripts/main.py",
)
LINE = "        if self.step == 0:\n            self.stream.wait_stream(torch.cuda.current_stream())\n"
Wrapper = bug.definition(
    path,
    "CudaGraphWrapper",
    {"torch": torch},
    LINE,
    "        self.stream.wait_stream(torch.cuda.current_stream())\n",
)
STEPS, SIZE = 16, 1 << 22


def run(cuda_graphs):
    weight = torch.ones(SIZE, device="cuda")
    inputs = [torch.full((SIZE,), float(i + 1), device="cuda") for i in range(STEPS)]
    gradient = torch.zeros(SIZE, device="cuda")
    bug.settle()

    def step(model, x):
        torch.mul(model, x, out=gradient)
        return gradient.sum()

    wrapper = Wrapper(
        weight, step, lambda model: model, lambda model: gradient.zero_(), cuda_graphs, STEPS + 1
    )
    losses = []
    for x in inputs:
        losses.append(wrapper.train_step(x).clone() if not cuda_graphs else wrapper.train_step(x))
        torch.cuda.current_stream().wait_stream(wrapper.stream)
        # The update of the weights, as the script has it: in the current stream.
        bug.busy(1)
        bug.late(3)
        weight.add_(gradient, alpha=1e-2)
    bug.settle()
    return [float(loss) for loss in losses]


bug.busy(1)
expected = run(False)
bug.start()
found = run(True)
wrong = sum(abs(one - other) > 1e-3 * abs(other) for one, other in zip(found, expected))
bug.end(wrong, STEPS)
