"""Programs with one planted error of order between two GPUs each, and their mended twins.

As pytorch.py, on a machine with two GPUs.
"""

import torch

from planting import planted, run

N = 1 << 20
ROUNDS = 14
HERE, THERE = "cuda:0", "cuda:1"


def settle():
    torch.cuda.synchronize(HERE)
    torch.cuda.synchronize(THERE)


@planted("copy")
def copy_to_another_gpu(right):
    """The other GPU computes with what may not have arrived."""
    move, use = torch.cuda.Stream(HERE), torch.cuda.current_stream(THERE)
    source, x = torch.ones(N, device=HERE), torch.zeros(N, device=THERE)
    settle()
    for _ in range(ROUNDS):
        move.wait_stream(use)
        # PyTorch copies in the current stream of the source's GPU, and waits on both sides for
        # the current streams alone.
        with torch.cuda.stream(torch.cuda.Stream(THERE)), torch.cuda.stream(move):
            x.copy_(source, non_blocking=True)
        if right:
            use.wait_stream(move)
        x * 2


@planted("copy")
def copy_over_a_reader_on_another_gpu(right):
    """The next copy does not wait for the kernel that reads the last one."""
    move, use = torch.cuda.Stream(HERE), torch.cuda.current_stream(THERE)
    source, x = torch.ones(N, device=HERE), torch.zeros(N, device=THERE)
    settle()
    for _ in range(ROUNDS):
        if right:
            move.wait_stream(use)
        with torch.cuda.stream(torch.cuda.Stream(THERE)), torch.cuda.stream(move):
            x.copy_(source, non_blocking=True)
        use.wait_stream(move)
        x * 2


if __name__ == "__main__":
    run(settle)
