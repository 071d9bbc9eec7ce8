// Random programs whose right answer is known: kernels, copies and memsets in several streams, on
// parts of few allocations.
//
//     nvcc -o random random.cu; ./random FIRST COUNT [missing | --show]
//
// For each case, from a seed, the program draws calls whose bytes it knows. A call that would
// conflict with an unordered one waits for it first, so the cases of one process are free of races,
// though neighbours in an allocation are used at the same time; any finding is false. With `missing`
// the last call of the case does not wait, and the case has a race; COUNT should be 1. With --show
// the calls are printed. The last line has the number of calls, and of unordered pairs in one
// allocation.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t code = (call);                                                                 \
        if (code != cudaSuccess) {                                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(code));                            \
            exit(2);                                                                               \
        }                                                                                          \
    } while (0)

// ---- The kernels: elements of 1, 2, 4, 8 and 16 bytes.

struct alignas(16) Wide {
    float x, y, z, w;
};
template <class T> __device__ T next(T value) { return value + T(1); }
template <> __device__ Wide next(Wide v) { return {v.x + 1, v.y + 1, v.z + 1, v.w + 1}; }

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

template <class T> __global__ void map(T *out, const T *in, int count) {
    int i = INDEX;
    if (i < count) out[i] = next(in[i]);
}
template <class T> __global__ void moved(T *base, int64_t to, int64_t from, int count) {
    int i = INDEX;
    if (i < count) base[to + i] = base[from + i];
}
template <class T> __global__ void loop(T *out, const T *in, int count) {
    for (int i = INDEX; i < count; i += gridDim.x * blockDim.x) out[i] = next(in[i]);
}
template <class T> __global__ void strided(T *out, int offset, int stride, int count) {
    int i = INDEX;
    if (i < count) out[offset + i * stride] = T();
}
template <class T> __global__ void reversed(T *out, const T *in, int count) {
    int i = INDEX;
    if (i < count) out[count - 1 - i] = in[i];
}
template <class T> __global__ void stencil(T *out, const T *in, int count) {
    int i = INDEX + 1;
    if (i < count - 1) out[i] = next(i % 2 ? in[i - 1] : in[i + 1]);
}
template <class T> __global__ void tile(T *out, int pitch, int width, int height) {
    int x = INDEX, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) out[y * pitch + x] = T();
}
template <class T> __global__ void rows(T *out, const T *in, int pitch, int width, int height) {
    int x = INDEX;
    if (x >= width) return;
    for (int y = 0; y < height; y++) out[y * pitch + x] = next(in[y * width + x]);
}
template <class T> __global__ void slot(T *ring, unsigned round, unsigned slots, unsigned size) {
    unsigned i = INDEX;
    if (i < size) ring[(uint64_t)(round % slots) * size + i] = T();
}
template <class T> __global__ void masked(T *ring, unsigned offset, unsigned mask, unsigned count) {
    unsigned i = INDEX;
    if (i < count) ring[(offset + i) & mask] = T();
}
template <class T> struct Fields {
    int count, shift;
    T *out;
    const T *in[3];
};
template <class T> __global__ void structure(Fields<T> fields, int chosen) {
    int i = INDEX;
    if (i < fields.count) fields.out[i + fields.shift] = next(fields.in[chosen][i]);
}
template <class T> __global__ void either(T *one, T *other, int count, bool first) {
    int i = INDEX;
    if (i >= count) return;
    if (first) one[i] = T();
    else other[i] = T();
}
template <class T> __global__ void first_only(T *out, const T *in) {
    if (INDEX == 0) *out = next(*in);
}
template <class T> __global__ void ends(T *out, int count) {
    int i = INDEX;
    if (i == 0 || i == count - 1) out[i] = T();
}
template <class T> __global__ void turned(T *out, const T *in, int side) {
    __shared__ T part[8][9];
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < side && y < side) part[threadIdx.y][threadIdx.x] = in[y * side + x];
    __syncthreads();
    x = blockIdx.y * 8 + threadIdx.x, y = blockIdx.x * 8 + threadIdx.y;
    if (x < side && y < side) out[y * side + x] = part[threadIdx.x][threadIdx.y];
}
__global__ void total(unsigned *sum, const unsigned *in, int count) {
    __shared__ unsigned part;
    if (threadIdx.x == 0) part = 0;
    __syncthreads();
    int i = INDEX;
    if (i < count) atomicAdd(&part, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(sum, part);
}
template <class T> __global__ void gathered(T *out, const T *in, const int *places, int count) {
    int i = INDEX;
    if (i < count) out[i] = in[places[i]];
}

// ---- What calls touch, and how they are ordered

struct Touch {
    uint64_t begin, end;
    char kind; // r, w, or a: an atomic operation
};
struct Call {
    std::string name;
    int stream;
    std::vector<Touch> touches;
    std::vector<int> after; // of each stream, how many of its calls are before this one
    int number;             // in its stream, from 1
};

static uint64_t state;
static uint64_t draw(uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % below;
}

static bool overlap(const Call &one, const Call &other) {
    for (auto &a : one.touches)
        for (auto &b : other.touches)
            if (a.begin < b.end && b.begin < a.end && (a.kind != 'r' || b.kind != 'r') &&
                (a.kind != 'a' || b.kind != 'a'))
                return true;
    return false;
}

static const int STREAMS = 4, BUFFERS = 3, EVENTS = 64;
static const uint64_t SIZE = 1 << 18;
static char *buffers[BUFFERS], *pinned;
static int *places;
static cudaStream_t streams[STREAMS];
static cudaEvent_t events[EVENTS];
static int next_event;
static std::vector<std::vector<int>> clocks; // of the streams, and last of the host
static std::vector<Call> calls;
static long pairs, all_calls;
static bool show;

static bool before(const Call &earlier, const Call &later) {
    return earlier.number <= later.after[earlier.stream];
}
static void join(std::vector<int> &into, const std::vector<int> &from) {
    for (size_t i = 0; i < into.size(); i++)
        if (from[i] > into[i]) into[i] = from[i];
}

// Makes stream `later` wait for all of `earlier`, in one of several ways.
static void order(int later, int earlier) {
    if (show) printf("  %d waits for %d\n", later, earlier);
    switch (draw(6)) {
        case 0:
            CHECK(cudaStreamSynchronize(streams[earlier]));
            join(clocks[STREAMS], clocks[earlier]);
            break;
        case 1:
            CHECK(cudaEventRecord(events[next_event], streams[earlier]));
            CHECK(cudaEventSynchronize(events[next_event]));
            join(clocks[STREAMS], clocks[earlier]);
            break;
        default:
            CHECK(cudaEventRecord(events[next_event], streams[earlier]));
            CHECK(cudaStreamWaitEvent(streams[later], events[next_event], 0));
    }
    next_event = (next_event + 1) % EVENTS;
    join(clocks[later], clocks[earlier]);
}

struct Draft : Call {
    cudaStream_t on() const { return streams[stream]; }
    void add(const void *at, uint64_t bytes, char kind) {
        touches.push_back({(uint64_t)at, (uint64_t)at + bytes, kind});
    }
};

// ---- One random call: what it touches, and how to make it

struct Plan {
    Draft call;
    void (*make)(const Plan &);
    char *a, *b, *c, *d;
    int64_t n, m, k, j;
    unsigned block;
};

// A place for `count` elements of `size` bytes, mostly near the begin of a buffer, so that calls meet.
static char *place(uint64_t bytes, uint64_t align) {
    uint64_t room = SIZE - bytes;
    uint64_t at = draw(3) ? draw(16) * 4096 + (draw(2) ? 0 : draw(64) * align) : draw(room + 1);
    if (at > room) at = room;
    return buffers[draw(BUFFERS)] + at / align * align;
}
static unsigned grid(int64_t count, unsigned block) { return (unsigned)((count + block - 1) / block); }

template <class T> static Plan kernel(Plan p) {
    const int64_t S = sizeof(T);
    const unsigned blocks[] = {32, 64, 100, 128, 256};
    p.block = blocks[draw(5)];
    int64_t n = p.n = 1 + (draw(2) ? draw(1200) : 32 * draw(40));
    p.a = place(n * S, S), p.b = place(n * S, S);
    auto &t = p.call;
    switch (draw(16)) {
        case 0:
            t.name = "map", t.add(p.a, n * S, 'w'), t.add(p.b, n * S, 'r');
            p.make = [](const Plan &p) { map<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, (T *)p.b, p.n); };
            break;
        case 1:
            p.m = draw(2000), p.k = draw(2000), p.a = place((2000 + n) * S, S);
            t.name = "moved", t.add(p.a + p.m * S, n * S, 'w'), t.add(p.a + p.k * S, n * S, 'r');
            p.make = [](const Plan &p) { moved<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, p.m, p.k, p.n); };
            break;
        case 2:
            p.m = 1 + draw(3);
            t.name = "loop", t.add(p.a, n * S, 'w'), t.add(p.b, n * S, 'r');
            p.make = [](const Plan &p) { loop<T><<<p.m, p.block, 0, p.call.on()>>>((T *)p.a, (T *)p.b, p.n); };
            break;
        case 3: {
            n = p.n = 1 + draw(300), p.m = draw(40), p.k = 1 + draw(9);
            p.a = place((p.m + n * p.k) * S, S);
            t.name = "strided";
            for (int64_t i = 0; i < n; i++) t.add(p.a + (p.m + i * p.k) * S, S, 'w');
            p.make = [](const Plan &p) { strided<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, p.m, p.k, p.n); };
            break;
        }
        case 4:
            t.name = "reversed", t.add(p.a, n * S, 'w'), t.add(p.b, n * S, 'r');
            p.make = [](const Plan &p) { reversed<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, (T *)p.b, p.n); };
            break;
        case 5:
            n = p.n = n + 2, p.a = place(n * S, S), p.b = place(n * S, S);
            t.name = "stencil";
            if (n > 2) t.add(p.a + S, (n - 2) * S, 'w');
            for (int64_t i = 1; i < n - 1; i++) t.add(p.b + (i % 2 ? i - 1 : i + 1) * S, S, 'r');
            p.make = [](const Plan &p) { stencil<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, (T *)p.b, p.n); };
            break;
        case 6:
            p.n = 1 + draw(70), p.m = 1 + draw(40), p.k = p.n + draw(60);
            p.a = place(p.k * p.m * S, S);
            t.name = "tile";
            for (int64_t y = 0; y < p.m; y++) t.add(p.a + y * p.k * S, p.n * S, 'w');
            p.make = [](const Plan &p) {
                dim3 block(16, 4), blocks((p.n + 15) / 16, (p.m + 3) / 4);
                tile<T><<<blocks, block, 0, p.call.on()>>>((T *)p.a, p.k, p.n, p.m);
            };
            break;
        case 7:
            p.n = 1 + draw(70), p.m = 1 + draw(20), p.k = p.n + draw(60);
            p.a = place(p.k * p.m * S, S), p.b = place(p.n * p.m * S, S);
            t.name = "rows", t.add(p.b, p.n * p.m * S, 'r');
            for (int64_t y = 0; y < p.m; y++) t.add(p.a + y * p.k * S, p.n * S, 'w');
            p.make = [](const Plan &p) { rows<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, (T *)p.b, p.k, p.n, p.m); };
            break;
        case 8:
            p.n = 1 + draw(500), p.m = draw(1000), p.k = 1 + draw(6);
            p.a = place(p.k * p.n * S, S);
            t.name = "slot", t.add(p.a + p.m % p.k * p.n * S, p.n * S, 'w');
            p.make = [](const Plan &p) { slot<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, p.m, p.k, p.n); };
            break;
        case 9: {
            p.k = (256 << draw(3)) - 1, p.m = draw(4000), n = p.n = 1 + draw(p.k);
            p.a = place((p.k + 1) * S, S);
            t.name = "masked";
            for (int64_t i = 0; i < n; i++) t.add(p.a + ((p.m + i) & p.k) * S, S, 'w');
            p.make = [](const Plan &p) { masked<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, p.m, p.k, p.n); };
            break;
        }
        case 10:
            p.m = draw(50), p.k = draw(3), p.a = place((n + p.m) * S, S);
            p.c = place(n * S, S), p.d = place(n * S, S);
            t.name = "structure", t.add(p.a + p.m * S, n * S, 'w');
            t.add(p.k == 0 ? p.b : p.k == 1 ? p.c : p.d, n * S, 'r');
            p.make = [](const Plan &p) {
                Fields<T> fields = {(int)p.n, (int)p.m, (T *)p.a, {(T *)p.b, (T *)p.c, (T *)p.d}};
                structure<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>(fields, p.k);
            };
            break;
        case 11:
            p.k = draw(2);
            t.name = "either", t.add(p.k ? p.a : p.b, n * S, 'w');
            p.make = [](const Plan &p) { either<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, (T *)p.b, p.n, p.k); };
            break;
        case 12:
            t.name = "first_only", t.add(p.a, S, 'w'), t.add(p.b, S, 'r');
            p.make = [](const Plan &p) { first_only<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, (T *)p.b); };
            break;
        case 13:
            t.name = "ends", t.add(p.a, S, 'w'), t.add(p.a + (n - 1) * S, S, 'w');
            p.make = [](const Plan &p) { ends<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, p.n); };
            break;
        case 14:
            n = p.n = 1 + draw(40), p.a = place(n * n * S, S), p.b = place(n * n * S, S);
            t.name = "turned", t.add(p.a, n * n * S, 'w'), t.add(p.b, n * n * S, 'r');
            p.make = [](const Plan &p) {
                dim3 block(8, 8), blocks((p.n + 7) / 8, (p.n + 7) / 8);
                turned<T><<<blocks, block, 0, p.call.on()>>>((T *)p.a, (T *)p.b, p.n);
            };
            break;
        default:
            p.k = draw(1000), p.b = place((n + 1000) * S, S);
            t.name = "gathered", t.add(p.a, n * S, 'w');
            for (int64_t i = 0; i < n; i++) t.add(p.b + (i * 7 % 1000) * S, S, 'r');
            p.make = [](const Plan &p) { gathered<T><<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((T *)p.a, (T *)p.b, places, p.n); };
    }
    return p;
}

static Plan any(int stream) {
    Plan p = {};
    p.call.stream = stream;
    switch (draw(12)) {
        case 0:
            p.n = 1 + draw(9000), p.a = place(p.n, 1);
            p.call.name = "memset", p.call.add(p.a, p.n, 'w');
            p.make = [](const Plan &p) { CHECK(cudaMemsetAsync(p.a, 1, p.n, p.call.on())); };
            return p;
        case 1:
            p.n = 1 + draw(9000), p.a = place(p.n, 1), p.b = pinned;
            p.call.name = "upload", p.call.add(p.a, p.n, 'w');
            p.make = [](const Plan &p) { CHECK(cudaMemcpyAsync(p.a, p.b, p.n, cudaMemcpyHostToDevice, p.call.on())); };
            return p;
        case 2:
            p.n = 1 + draw(9000), p.a = pinned + SIZE * (1 + stream), p.b = place(p.n, 1);
            p.call.name = "download", p.call.add(p.b, p.n, 'r');
            p.make = [](const Plan &p) { CHECK(cudaMemcpyAsync(p.a, p.b, p.n, cudaMemcpyDeviceToHost, p.call.on())); };
            return p;
        case 3:
            p.n = 1 + draw(9000), p.a = place(p.n, 1), p.b = place(p.n, 1);
            p.call.name = "copy", p.call.add(p.a, p.n, 'w'), p.call.add(p.b, p.n, 'r');
            p.make = [](const Plan &p) { CHECK(cudaMemcpyAsync(p.a, p.b, p.n, cudaMemcpyDeviceToDevice, p.call.on())); };
            return p;
        case 4:
            p.n = 1 + draw(300), p.m = 1 + draw(20), p.k = p.n + draw(300);
            p.a = place(p.k * p.m, 1), p.b = pinned;
            p.call.name = "upload of rows";
            for (int64_t y = 0; y < p.m; y++) p.call.add(p.a + y * p.k, p.n, 'w');
            p.make = [](const Plan &p) { CHECK(cudaMemcpy2DAsync(p.a, p.k, p.b, p.n, p.n, p.m, cudaMemcpyHostToDevice, p.call.on())); };
            return p;
        case 5:
            p.block = 128, p.n = 1 + draw(2000), p.a = place(4, 4), p.b = place(p.n * 4, 4);
            p.call.name = "total", p.call.add(p.a, 4, 'a'), p.call.add(p.b, p.n * 4, 'r');
            p.make = [](const Plan &p) { total<<<grid(p.n, p.block), p.block, 0, p.call.on()>>>((unsigned *)p.a, (unsigned *)p.b, p.n); };
            return p;
    }
    switch (draw(5)) {
        case 0: return kernel<char>(p);
        case 1: return kernel<short>(p);
        case 2: return kernel<double>(p);
        case 3: return kernel<Wide>(p);
        default: return kernel<float>(p);
    }
}

static void submit(const Plan &plan) {
    auto &clock = clocks[plan.call.stream];
    join(clock, clocks[STREAMS]);
    Call call = plan.call;
    call.after = clock, call.number = ++clock[call.stream];
    for (auto &earlier : calls)
        pairs += !before(earlier, call);
    if (show) {
        printf("%s in %d:", call.name.c_str(), call.stream);
        for (size_t i = 0; i < call.touches.size() && i < 6; i++)
            printf(" %c %#lx+%#lx", call.touches[i].kind, (long)call.touches[i].begin, (long)(call.touches[i].end - call.touches[i].begin));
        printf("\n");
    }
    calls.push_back(call);
    all_calls++;
    plan.make(plan);
    CHECK(cudaGetLastError());
}

// The calls that `plan` conflicts with, and that nothing orders before it.
static std::vector<int> conflicts(const Plan &plan) {
    Call call = plan.call;
    call.after = clocks[call.stream];
    join(call.after, clocks[STREAMS]);
    std::vector<int> all;
    for (size_t i = 0; i < calls.size(); i++)
        if (!before(calls[i], call) && overlap(calls[i], call)) all.push_back((int)i);
    return all;
}

static void one(uint64_t seed, bool missing) {
    state = seed * 0x9e3779b97f4a7c15 + 1;
    for (int i = 0; i < 8; i++) draw(2);
    calls.clear(), clocks.assign(STREAMS + 1, std::vector<int>(STREAMS));
    int count = 3 + (int)draw(14);
    for (int i = 0; i < count; i++) {
        Plan plan = any((int)draw(STREAMS));
        // Few waits: a call that conflicts is drawn again a few times.
        for (int again = 0; again < 6 && !conflicts(plan).empty(); again++) plan = any(plan.call.stream);
        for (int with : conflicts(plan))
            if (!before(calls[with], [&] { Call c = plan.call; c.after = clocks[c.stream]; join(c.after, clocks[STREAMS]); return c; }()))
                order(plan.call.stream, calls[with].stream);
        submit(plan);
    }
    while (missing) {
        Plan plan = any((int)draw(STREAMS));
        auto with = conflicts(plan);
        if (with.empty()) continue;
        printf("race: %s and %s\n", calls[with[0]].name.c_str(), plan.call.name.c_str());
        submit(plan);
        break;
    }
    CHECK(cudaDeviceSynchronize());
}

int main(int count, char **words) {
    if (count < 3) return fprintf(stderr, "random FIRST COUNT [missing | --show]\n"), 2;
    bool missing = count > 3 && !strcmp(words[3], "missing");
    show = count > 3 && !strcmp(words[count - 1], "--show");
    for (auto &buffer : buffers) {
        CHECK(cudaMalloc(&buffer, SIZE));
        CHECK(cudaMemset(buffer, 0, SIZE));
    }
    CHECK(cudaMallocHost(&pinned, SIZE * (STREAMS + 1)));
    std::vector<int> table(1300);
    for (int i = 0; i < 1300; i++) table[i] = i * 7 % 1000;
    CHECK(cudaMalloc(&places, table.size() * 4));
    CHECK(cudaMemcpy(places, table.data(), table.size() * 4, cudaMemcpyHostToDevice));
    for (auto &stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (auto &event : events) CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());
    for (long i = 0; i < atol(words[2]); i++) {
        if (show) printf("case %ld\n", atol(words[1]) + i);
        one(atol(words[1]) + i, missing);
    }
    printf("%ld calls, %ld unordered pairs\n", all_calls, pairs);
}
