"""PyTorch: the stager of asynchronous checkpoints copies in a stream that waits for nothing."""

import bug

torch = bug.torch
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

if bug.MENDED:
    stage = DefaultStager.stage

    def ordered(self, state_dict, **rest):
        self._staging_stream.wait_stream(torch.cuda.current_stream())
        return stage(self, state_dict, **rest)

    DefaultStager.stage = ordered

ROUNDS = 8
x = torch.zeros(1 << 20, device="cuda")


def staged():
    # One for each checkpoint: with 2.11, `close` leaves it unusable.
    stager = DefaultStager(StagingOptions())
    copy = stager.stage({"x": x}).result()["x"].clone()
    stager.close()
    return copy


staged()
bug.busy(1)
bug.start()
wrong = 0
for _ in range(ROUNDS):
    x.fill_(0)
    bug.settle()
    bug.busy(4)
    bug.late()
    x.fill_(7)
    wrong += not bool((staged() == 7).all())
bug.end(wrong, ROUNDS)
