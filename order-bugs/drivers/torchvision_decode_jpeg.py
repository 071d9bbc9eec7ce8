"""torchvision: decode_jpeg decodes in a stream of its own, into memory that the caller still uses."""

import io

import bug

torch = bug.torch
try:
    import torchvision
    from PIL import Image
except ImportError as error:
    bug.cannot(str(error))

HEIGHT, WIDTH, ROUNDS, MANY = 1080, 1920, 20, 4
torch.manual_seed(0)
noise = torch.randint(0, 255, (HEIGHT // 8, WIDTH // 8, 3), dtype=torch.uint8)
picture = Image.fromarray(noise.numpy()).resize((WIDTH, HEIGHT))
file = io.BytesIO()
# The decoder in hardware takes no progressive ones, and ignores its stream.
picture.save(file, "JPEG", progressive=True, quality=90)
data = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)


def decode():
    if bug.MENDED:
        bug.current().synchronize()
    return torchvision.io.decode_jpeg(data, device="cuda")


try:
    for _ in range(3):
        decode()
except RuntimeError as error:
    bug.cannot(f"decode_jpeg: {error}")
bug.busy(1)
torch.full((3, HEIGHT, WIDTH), 7, dtype=torch.uint8, device="cuda").sum()
bug.start()
wrong = 0
for _ in range(ROUNDS):
    images = [
        torch.full((3, HEIGHT, WIDTH), 7, dtype=torch.uint8, device="cuda") for _ in range(MANY)
    ]
    bug.settle()
    bug.busy(4)
    bug.late()
    sums = [image.sum() for image in images]
    del images
    picture = decode()
    bug.settle()
    wrong += any(int(value) != 7 * 3 * HEIGHT * WIDTH for value in sums)
bug.end(wrong, ROUNDS)
