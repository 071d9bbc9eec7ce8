"""PyTorch, FSDP2 with offloading: a hook reads a gradient before its copy has arrived."""

import bug

torch = bug.torch
import torch.distributed as dist

try:
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
    from torch.distributed.fsdp._fully_shard import _fsdp_collectives, _fsdp_param_group
except ImportError as error:
    bug.cannot(f"FSDP2: {error}")

OLD = "non_blocking = fsdp_param.pin_memory and not to_accumulate_grad\n"
NEW = OLD.rstrip() + (
    ' and not getattr(fsdp_param.sharded_param, "_post_accumulate_grad_hooks", None)\n'
)
bug.mend(_fsdp_collectives, "foreach_reduce", OLD, NEW)
_fsdp_param_group.foreach_reduce = _fsdp_collectives.foreach_reduce

torch.cuda.set_device(0)
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
mesh = dist.device_mesh.init_device_mesh("cuda", (1,))
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048, bias=False) for _ in range(3)])
for layer in model:
    fully_shard(layer, mesh=mesh, offload_policy=CPUOffloadPolicy())
fully_shard(model, mesh=mesh, offload_policy=CPUOffloadPolicy())

seen = {}


def note(name):
    def hook(parameter):
        seen[name] = parameter.grad.to_local().clone()

    return hook


for name, parameter in model.named_parameters():
    parameter.register_post_accumulate_grad_hook(note(name))
if bug.DELAY:
    # The reduction is held back in its stream.
    divide = _fsdp_collectives._div_if_needed

    def late_divide(*arguments):
        bug.late(10)
        return divide(*arguments)

    _fsdp_collectives._div_if_needed = late_divide

x = torch.randn(256, 2048, device="cuda")
ROUNDS, wrong, total = 4, 0, 0
model(x).sum().backward()
bug.start()
for i in range(ROUNDS):
    model.zero_grad()
    seen.clear()
    # Other numbers than those that the memory may still have.
    (model(x * (i + 2)) ** 2).sum().backward()
    bug.settle()
    for name, parameter in model.named_parameters():
        total += 1
        wrong += not torch.equal(seen[name], parameter.grad.to_local())
bug.end(wrong, total)
dist.destroy_process_group()
