"""PyTorch: a capture sets the generator's numbers in its stream, and no replay waits for that."""

import bug

torch = bug.torch

ROUNDS, REPLAYS = 200, 60
x = torch.ones(256, device="cuda")
stream = torch.cuda.Stream()


def replays(graph, y):
    rows = torch.empty(REPLAYS, 256, device="cuda")
    for row in rows:
        graph.replay()
        row.copy_(y)
    bug.settle()
    return rows


torch.nn.functional.dropout(x)
bug.start()
wrong = 0
for _ in range(ROUNDS):
    graph = torch.cuda.CUDAGraph()
    bug.settle()
    with torch.cuda.stream(stream):
        bug.late(1)
        graph.capture_begin()
        y = torch.nn.functional.dropout(x)
        graph.capture_end()
    state = torch.cuda.get_rng_state()
    if bug.MENDED:
        bug.current().wait_stream(stream)
    rows = replays(graph, y)
    # The same numbers are drawn again, when the capture's stream is done.
    torch.cuda.set_rng_state(state)
    wrong += not torch.equal(rows, replays(graph, y))
bug.end(wrong, ROUNDS)
