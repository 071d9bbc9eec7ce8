"""Operators of PyTorch, by parts: python pytorch.py PART. Each tensor is an allocation of its own if
PYTORCH_NO_CUDA_MEMORY_CACHING=1 is set."""

import ast
import inspect
import sys

import torch
import torch.nn.functional as F

torch.manual_seed(1)
D = "cuda"


def r(*shape, dtype=torch.float32):
    return torch.randn(*shape, device=D).to(dtype)


def i(high, *shape):
    return torch.randint(0, high, shape, device=D)


def elementwise():
    for dtype in (torch.float32, torch.float16, torch.int64):
        for n in (7, 1000, 70001):
            a = (r(n) * 10).to(dtype)
            b = (r(n) * 10).to(dtype) + 1
            c = a + b, a * 2, a - b, torch.maximum(a, b), a == b, a > 3, -a, a.abs()
            a += b
            a.mul_(3)
            a.clamp_(-5, 5)
            a.fill_(4)
            a.zero_()
    for f in (torch.exp, torch.sin, torch.sqrt, torch.sigmoid, torch.tanh, F.gelu, F.silu, F.relu, torch.log1p, torch.erf,
              torch.rsqrt, torch.round, torch.isnan):
        f(r(3001).abs())
    torch.addcmul(r(99), r(99), r(99)), torch.addcdiv(r(99), r(99), r(99)), torch.lerp(r(99), r(99), 0.5)
    torch.pow(r(100).abs(), 2.5), torch.atan2(r(100), r(100)), torch.fmod(r(100), 0.7), torch.remainder(i(99, 100), 7)
    i(100, 1000) & 3, i(100, 1000) << 2, ~i(100, 1000), i(100, 1000) // 7, i(100, 1000) % 11


def strided():
    a = r(33, 65, 17)
    a.transpose(0, 2) + 1
    a.permute(2, 0, 1).contiguous()
    a[:, ::2, 1:].mul(3)
    a[:, 3:9] += 1
    a[::2].copy_(a[1::2][:17].expand(17, 65, 17) if a[1::2].shape[0] == 17 else a[::2] * 2)
    a + r(65, 1) * r(17)
    a.to(torch.float16).to(torch.float64)
    a.flip(1), a.roll(3, 1), torch.rot90(a, 1, (0, 1)), a.tril(), a.triu(1), torch.diagonal(a[:, :17], 0, 1, 2).clone()
    r(64, 64).t().contiguous(), r(100, 3).t().clone()


def reductions():
    for shape in ((1000,), (33, 70), (8, 513, 9), (300001,)):
        a = r(*shape)
        for f in (torch.sum, torch.mean, torch.amax, torch.amin, torch.std, torch.var, torch.prod, torch.argmax,
                  torch.logsumexp):
            f(a, dim=-1)
            f(a, dim=0)
        a.sum(), a.max(), a.mean(), a.norm(), a.argmin(), (a > 0).any(), (a > 0).all(), torch.count_nonzero(a)
        a.max(dim=-1), a.min(dim=0), a.median(), torch.var_mean(a, 0), a.half().sum()
        torch.aminmax(a), a.norm(dim=0)


def softmax():
    for n, k in ((4, 10), (128, 1000), (16, 5000), (3, 40000)):
        a = r(n, k).requires_grad_()
        F.softmax(a, 1).sum().backward()
        F.log_softmax(a, 1)
        F.softmax(a, 0)
        F.cross_entropy(a, i(k, n)).backward()
    F.nll_loss(F.log_softmax(r(8, 5, 6, 6), 1), i(5, 8, 6, 6))
    torch.log_softmax(r(8, 5, 6).half(), 2)


def norms():
    for n, k in ((8, 64), (100, 768), (5, 4097)):
        a = r(n, k).requires_grad_()
        w, b = r(k).requires_grad_(), r(k).requires_grad_()
        F.layer_norm(a, (k,), w, b).sum().backward()
        F.rms_norm(a, (k,), w).sum().backward()
    x = r(8, 16, 10, 10).requires_grad_()
    torch.nn.GroupNorm(4, 16).cuda()(x).sum().backward()
    torch.nn.InstanceNorm2d(16).cuda()(x).sum().backward()
    with torch.backends.cudnn.flags(enabled=False):
        m = torch.nn.BatchNorm2d(16).cuda()
        m(x).sum().backward()
        m.eval()(x)
        torch.nn.BatchNorm1d(33).cuda()(r(50, 33))


def batchnorm_cudnn():
    x = r(8, 16, 10, 10).requires_grad_()
    m = torch.nn.BatchNorm2d(16).cuda()
    m(x).sum().backward()
    m.eval()(x)


def gemm():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for n, k, m in ((16, 16, 16), (100, 60, 33), (512, 256, 128), (1, 2048, 7)):
            a, b = r(n, k, dtype=dtype), r(k, m, dtype=dtype)
            a @ b, a @ b[:, 0], torch.addmm(r(m, dtype=dtype), a, b)
        torch.bmm(r(5, 20, 30, dtype=dtype), r(5, 30, 40, dtype=dtype))
        F.linear(r(64, 128, dtype=dtype), r(256, 128, dtype=dtype), r(256, dtype=dtype))
    torch.dot(r(1000), r(1000)), torch.mv(r(50, 60), r(60)), torch.outer(r(30), r(40))
    torch.baddbmm(r(5, 20, 40), r(5, 20, 30), r(5, 30, 40)), torch.einsum("abc,cd->abd", r(3, 4, 5), r(5, 6))


def gemm_tf32():
    torch.backends.cuda.matmul.allow_tf32 = True
    for n, k, m in ((128, 128, 128), (1000, 600, 330), (2048, 512, 1024)):
        r(n, k) @ r(k, m)
        r(n, k, dtype=torch.float16) @ r(k, m, dtype=torch.float16)
    torch.linalg.inv(r(20, 20)), torch.linalg.solve(r(8, 20, 20), r(8, 20, 2)), torch.linalg.cholesky(torch.eye(30, device=D) * 3)


def products():
    """Products of cuBLASLt by tensor maps: layouts, sizes that end within a tile, what follows the product."""
    for dtype in (torch.float16, torch.bfloat16):
        for n, k, m in ((64, 64, 64), (256, 512, 128), (1000, 600, 328), (2048, 1024, 1024), (8, 4096, 4096), (4096, 64, 512)):
            a, b, c, d = r(n, k, dtype=dtype), r(k, m, dtype=dtype), r(k, n, dtype=dtype), r(m, k, dtype=dtype)
            a @ b, c.t() @ b, a @ d.t(), c.t() @ d.t()
            F.linear(a, d, r(m, dtype=dtype))
            torch.ops.aten._addmm_activation(r(m, dtype=dtype), a, b)
            torch.addmm(r(n, m, dtype=dtype), a, b, beta=0.5, alpha=2)
        for batch, n, k, m in ((3, 64, 128, 72), (16, 128, 64, 128), (5, 200, 96, 40)):
            a, b = r(batch, n, k, dtype=dtype), r(batch, k, m, dtype=dtype)
            torch.bmm(a, b), torch.baddbmm(r(batch, n, m, dtype=dtype), a, b), a[::2] @ b[::2]
    one = torch.ones((), device=D)
    for n, k, m in ((64, 128, 64), (512, 256, 1024)):
        a, b = r(n, k).to(torch.float8_e4m3fn), r(m, k).to(torch.float8_e4m3fn).t()
        torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)
        torch._scaled_mm(a, b, one, one, out_dtype=torch.float16, bias=r(m, dtype=torch.float16))
    for n, k, m in ((128, 256, 64), (1024, 512, 256)):
        torch._int_mm(i(9, n, k).to(torch.int8), i(9, k, m).to(torch.int8))


def conv():
    for dtype in (torch.float32, torch.float16):
        x = r(4, 8, 20, 20, dtype=dtype).requires_grad_()
        w = r(16, 8, 3, 3, dtype=dtype).requires_grad_()
        F.conv2d(x, w, padding=1).sum().backward()
        F.conv2d(x, w, stride=2)
        F.conv_transpose2d(x, r(8, 4, 2, 2, dtype=dtype), stride=2)
        F.conv2d(x, r(8, 1, 3, 3, dtype=dtype), groups=8)
    F.conv1d(r(4, 8, 100), r(16, 8, 5)), F.conv3d(r(2, 3, 8, 8, 8), r(4, 3, 3, 3, 3))
    with torch.backends.cudnn.flags(enabled=False):
        F.conv2d(x.float(), w.float(), padding=1).sum().backward()
        F.conv2d(r(2, 8, 9, 9), r(8, 1, 3, 3), groups=8)


def pool():
    x = r(4, 8, 20, 20).requires_grad_()
    F.max_pool2d(x, 2).sum().backward()
    F.avg_pool2d(x, 3, 2, 1).sum().backward()
    F.adaptive_avg_pool2d(x, (5, 5)).sum().backward()
    F.adaptive_max_pool2d(x, 3).sum().backward()
    F.interpolate(x, scale_factor=2, mode="bilinear").sum().backward()
    F.interpolate(x, size=7, mode="nearest").sum().backward()
    F.pad(x, (1, 2, 3, 4)), F.pad(x, (1, 2, 3, 4), mode="reflect"), F.pad(x, (1, 1, 1, 1), mode="replicate")
    F.grid_sample(x, r(4, 6, 6, 2)), F.pixel_shuffle(x, 2), F.unfold(x, 3), F.fold(r(1, 12, 9), (4, 4), 2)


def attention():
    for dtype in (torch.float16, torch.float32):
        q, k, v = (r(2, 4, 64, 32, dtype=dtype).requires_grad_() for _ in range(3))
        F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
        F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(64, 64, device=D, dtype=torch.bool).tril())
    m = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).cuda().eval()
    with torch.no_grad():
        m(r(3, 17, 64))


def indexing():
    a = r(100, 30)
    index = i(100, 40)
    a[index], a.index_select(0, index), torch.gather(a, 1, i(30, 100, 7)), torch.take(a, i(3000, 50))
    a[index, i(30, 40)]
    # Places that are written once: otherwise it is chance which value is last.
    once, columns = torch.randperm(100, device=D)[:40], r(100, 30).argsort(1)[:, :5]
    a.scatter_(1, columns, r(100, 5)), a.scatter_add_(1, i(30, 100, 5), r(100, 5))
    a.index_add_(0, index, r(40, 30)), a.index_copy_(0, once, r(40, 30)), a.index_fill_(1, i(30, 3), 2.0)
    a[index] = 3
    a[index, i(30, 40)] += 1
    a[a > 1], a.masked_fill_(a > 1, 0), a.masked_select(a < 0), torch.nonzero(a > 0), torch.where(a > 0, a, -a)
    a.masked_scatter_(a > 0, r(3000)), torch.bincount(index), torch.histc(a, 10), torch.bucketize(a, torch.arange(5., device=D))
    torch.isin(index, i(100, 7)), F.one_hot(index, 100), torch.scatter_reduce(a, 0, i(100, 5, 30), r(5, 30), "amax")
    a.put_(i(3000, 9), r(9), accumulate=True)


def sorting():
    for n in (10, 1000, 5000, 100000):
        a = r(n)
        a.sort(), a.sort(descending=True), a.argsort(stable=True), a.topk(5), torch.kthvalue(a, 3)
        torch.unique(i(100, n)), torch.unique_consecutive(i(3, n)), i(1000, n).sort(), torch.randperm(n, device=D)
    r(50, 30).sort(dim=1), r(50, 30).sort(dim=0), r(8, 3000).topk(7), r(8, 9).mode(), r(8, 5000).sort(dim=1), r(20, 40).median(1)
    torch.searchsorted(r(100).sort()[0], r(50)), torch.msort(r(40, 4))


def embedding():
    e = torch.nn.Embedding(500, 64).cuda()
    e(i(500, 20, 7)).sum().backward()
    e(i(500, 5000)).sum().backward()
    b = torch.nn.EmbeddingBag(500, 64).cuda()
    b(i(500, 20, 7)).sum().backward()
    torch.nn.EmbeddingBag(500, 64, mode="max").cuda()(i(500, 20, 7)).sum().backward()


def optimizers():
    for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
        for options in ({"foreach": True}, {"foreach": False}, {"fused": True}):
            if options.get("fused") and kind in (torch.optim.RMSprop, torch.optim.Adagrad):
                continue
            p = [torch.nn.Parameter(r(n)) for n in (5, 100, 7001, 70000)]
            o = kind(p, lr=0.1, **options)
            for _ in range(2):
                for one in p:
                    one.grad = r(*one.shape)
                o.step()
    p = [torch.nn.Parameter(r(n)) for n in (5, 100, 7001)]
    for one in p:
        one.grad = r(*one.shape)
    torch.nn.utils.clip_grad_norm_(p, 1.0)
    torch.nn.utils.clip_grad_value_(p, 1.0)


def foreach():
    a, b = [r(n) for n in (3, 100, 70000)], [r(n) for n in (3, 100, 70000)]
    torch._foreach_add(a, b), torch._foreach_mul(a, 2), torch._foreach_addcmul_(a, a, b, 0.5), torch._foreach_norm(a)
    torch._foreach_add_(a, [1.0, 2.0, 3.0]), torch._foreach_mul_(a, [1.0, 2.0, 3.0]), torch._foreach_addcdiv(a, a, b, [1., 2., 3.])
    torch._foreach_exp(a), torch._foreach_zero_(a), torch._foreach_copy_(a, b), torch._foreach_lerp(a, b, 0.5)
    torch._foreach_maximum(a, b), torch._foreach_sqrt(a)


def cat():
    for dims in ([(3, 5)] * 3, [(33, 8)] * 20, [(100, 64), (50, 64), (1, 64)]):
        parts = [r(*shape) for shape in dims]
        torch.cat(parts), torch.stack(parts) if len(set(dims)) == 1 else None, torch.cat([p.half() for p in parts])
    torch.cat([r(5, 3), r(5, 8)], 1), torch.cat([r(64, 64), r(64, 128)], 1), torch.cat([r(5, 3, 4).transpose(0, 2), r(4, 3, 5)])
    torch.chunk(r(10, 9), 3, 1)[1].contiguous(), torch.repeat_interleave(r(10), 3), r(3, 4).repeat(2, 3), torch.tile(r(3), (4,))
    torch.repeat_interleave(r(10), i(4, 10)), torch.meshgrid(r(3), r(4), indexing="ij")[0].clone(), torch.cartesian_prod(r(3), r(4))


def random():
    for n in (10, 5000, 300000):
        torch.rand(n, device=D), torch.randn(n, device=D), torch.randint(9, (n,), device=D)
        F.dropout(r(n).requires_grad_(), 0.3).sum().backward()
        r(n).bernoulli_(0.4), r(n).exponential_(), r(n).uniform_(1, 2), r(n).cauchy_(), r(n).log_normal_()
    torch.multinomial(r(5, 40).abs(), 3), torch.multinomial(r(5, 40).abs(), 30, True), torch.poisson(r(100).abs())
    torch.bernoulli(r(100).sigmoid()), torch.nn.Dropout2d().cuda()(r(2, 3, 4, 4)), F.alpha_dropout(r(100))


def scans():
    for shape in ((10,), (2000,), (300000,), (50, 70), (4, 3000)):
        a = r(*shape)
        a.cumsum(-1), a.cumsum(0), a.cumprod(-1), a.cummax(-1), a.logcumsumexp(-1), i(9, *shape).cumsum(-1)
    torch.diff(r(100)), torch.trapz(r(100)), torch.arange(1000, device=D), torch.linspace(0, 1, 77, device=D)
    torch.eye(20, device=D), torch.full((33,), 3, device=D), torch.tril_indices(9, 9, device=D), torch.logspace(0, 1, 9, device=D)


def training():
    m = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                            torch.nn.Flatten(), torch.nn.Linear(8 * 15 * 15, 10)).cuda()
    o = torch.optim.AdamW(m.parameters())
    for _ in range(2):
        with torch.autocast("cuda"):
            loss = F.cross_entropy(m(r(16, 3, 32, 32)), i(10, 16))
        loss.backward()
        o.step()
        o.zero_grad()
    torch.nn.LSTM(20, 30, 2).cuda()(r(5, 3, 20))[0].sum().backward()
    torch.nn.GRU(20, 30).cuda()(r(5, 3, 20))[0].sum().backward()
    F.ctc_loss(r(50, 4, 20).log_softmax(2), i(19, 4, 10) + 1, torch.full((4,), 50), torch.full((4,), 10))


def misc():
    a, b = r(20, 30), r(25, 30)
    torch.cdist(a, b), F.cosine_similarity(a, a), F.pairwise_distance(a, a), torch.corrcoef(a), torch.cov(a)
    F.mse_loss(a, a + 1), F.l1_loss(a, b[:20]), F.smooth_l1_loss(a, b[:20]), F.binary_cross_entropy_with_logits(a, a.sigmoid())
    F.kl_div(a.log_softmax(1), a.softmax(1)), F.hinge_embedding_loss(a, a.sign()), F.multi_margin_loss(a, i(30, 20))
    torch.fft.fft(r(64)), torch.fft.rfft2(r(16, 32)), torch.stft(r(1000), 64, return_complex=True, window=torch.hann_window(64, device=D))
    torch.polygamma(1, a.abs()), torch.lgamma(a.abs()), torch.special.i0(a), torch.heaviside(a, a), torch.nan_to_num(a)
    torch.quantile(a, 0.3), torch.renorm(a, 2, 0, 1.0), torch.cross(r(9, 3), r(9, 3), dim=1), torch.kron(r(3, 3), r(4, 4))
    a.view(torch.int32).bitwise_xor(3), torch.complex(a, a).abs(), torch.view_as_real(torch.complex(a, a) * 2j), a.bool().logical_not()
    torch.equal(a, a), torch.allclose(a, a), torch.histogram if False else None, torch.vander(r(9)), torch.block_diag(r(2, 2), r(3, 3))
    torch._int_mm(i(9, 32, 32).to(torch.int8), i(9, 32, 32).to(torch.int8))
    s = torch.sparse_coo_tensor(i(20, 2, 30), r(30), (20, 20)).coalesce()
    s @ r(20, 5), s.to_dense()


PARTS = [elementwise, strided, reductions, softmax, norms, batchnorm_cudnn, gemm, gemm_tf32, conv, pool, attention, indexing,
         sorting, embedding, optimizers, foreach, cat, random, scans, training, misc, products]


def run(part):
    """Each statement by itself: one that this version does not know takes nothing else with it."""
    scope = dict(globals())
    for statement in ast.parse(inspect.getsource(part)).body[0].body:
        try:
            exec(compile(ast.Module([statement], []), part.__name__, "exec"), scope)
        except (RuntimeError, TypeError, AttributeError, NotImplementedError) as error:
            print(f"{part.__name__}: line {statement.lineno}: {str(error)[:150]}", file=sys.stderr)
    torch.cuda.synchronize()


if sys.argv[1:] == ["--list"]:
    print(*(part.__name__ for part in PARTS))
for part in PARTS:
    if part.__name__ in sys.argv[1:]:
        run(part)
