"""PyTorch's own tests of streams: a side stream reads inputs that nothing has made it wait for."""

import bug

torch = bug.torch
USER = ("01ec0f7c969cc2fb1f7a2cf978df3cdf99ad2004", "test/inductor/test_user_streams.py")
DEPS = ("063cd4b472cb4fb2cb7f75506ac95aef5c14551b", "test/inductor/test_control_deps.py")
S = "s.wait_stream(torch.cuda.current_stream())\n"
WITH = "    with torch.cuda.stream(s):\n"
CUDA = "    with torch.cuda.stream(cuda_stream):\n"
stream = torch.cuda.Stream()
event = torch.Event("cuda")
CASES = {
    "user_stream_context": (
        USER,
        "TestUserStreamCompile.test_compile_with_user_stream_context.fn",
        (WITH, "    " + S + WITH),
        2,
        lambda x, y: (x + y) * 2 + 1,
    ),
    "data_dependency": (
        USER,
        "TestUserStreamCompile.test_stream_context_with_data_dependency.fn",
        (WITH, "    " + S + WITH),
        1,
        lambda x: x * 2 + 1,
    ),
    "cross_stream_stride_copy": (
        USER,
        "TestUserStreamCompile.test_cross_stream_stride_copy.fn",
        ("    with torch.cuda.stream(s1):\n", "    s1.wait_stream(torch.cuda.current_stream())\n    with torch.cuda.stream(s1):\n"),
        1,
        lambda x: x[:, ::2] + 2,
    ),
    "generic_stream_basic": (
        USER,
        "TestGenericStreamCompile.test_generic_stream_basic.fn",
        (CUDA, "    cuda_" + S.replace("s.wait", "stream.wait") + CUDA),
        1,
        lambda x: x * 2 + 1,
    ),
    "generic_event_record": (
        USER,
        "TestGenericStreamCompile.test_generic_event_record_on_stream.fn",
        (CUDA, "    cuda_" + S.replace("s.wait", "stream.wait") + CUDA),
        1,
        lambda x: x * 2 + 1,
    ),
    "control_deps": (
        DEPS,
        "TestControlDeps.test_ordering_barrier_is_nop.fn",
        ("    with s:\n", "    s.wait_stream(torch.cuda.current_stream())\n    with s:\n"),
        1,
        lambda x: (x + 1) * 2,
    ),
}
(commit, path), name, change, inputs, right = CASES[bug.CASE or "data_dependency"]
scope = {"torch": torch, "GPU_TYPE": "cuda", "cuda_stream": stream, "event": event}
fn = bug.definition(bug.source("pytorch+pytorch", commit, path), name, scope, *change)

SHAPE, ROUNDS = (64, 64), 20
bug.busy(1)
fn(*[torch.zeros(SHAPE, device="cuda") for _ in range(inputs)])
bug.start()
wrong = 0
for i in range(ROUNDS):
    bug.settle()
    bug.busy(1)
    bug.late(5)
    # Other numbers than those that the memory may still have.
    values = [torch.full(SHAPE, float(i + 1), device="cuda") for _ in range(inputs)]
    result = fn(*values)
    bug.settle()
    wrong += not torch.equal(result, right(*values))
bug.end(wrong, ROUNDS)
