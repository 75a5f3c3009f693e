#!/usr/bin/python3
"""What PyTorch does: a model trained by DistributedDataParallel on Gloo.

One process per worker, one thread each, started by `starling run` (or any launcher that sets RANK and
WORLD_SIZE); the processes meet through a file. The models, the data, the batches and AdamW are those of
`starling-train images`. The clock starts after the warm-up steps and a barrier; rank 0 prints one line of
JSON.
"""
import argparse
import gzip
import json
import os
import sys
import time

try:
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
except ImportError as error:
    sys.exit(f"train_ddp: {error}: apt-get install python3-torch")

FOLDER = os.environ.get("STARLING_DATA", "/usr/share/datasets") + "/fashion-mnist"


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(784, 512)
        self.second = nn.Linear(512, 256)
        self.last = nn.Linear(256, 10)

    def forward(self, images):
        x = torch.relu(self.first(images.flatten(1)))
        return self.last(torch.relu(self.second(x)))


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 32, 5, padding=2)
        self.second = nn.Conv2d(32, 64, 5, padding=2)
        self.third = nn.Linear(64 * 7 * 7, 128)
        self.last = nn.Linear(128, 10)

    def forward(self, images):
        # ReLU after the pool: the same values at a quarter of the cost.
        x = torch.relu(torch.max_pool2d(self.first(images), 2))
        x = torch.relu(torch.max_pool2d(self.second(x), 2))
        return self.last(torch.relu(self.third(x.flatten(1))))


def load():
    """All training images as bytes (count, 1, 28, 28), and their labels."""

    def read(name, header):
        path = f"{FOLDER}/train-{name}-ubyte.gz"
        try:
            with gzip.open(path) as file:
                return torch.frombuffer(bytearray(file.read()), dtype=torch.uint8, offset=header)
        except OSError as error:
            sys.exit(f"train_ddp: {path}: {error.strerror or error}: apt-get install dataset-fashion-mnist")

    return read("images-idx3", 16).view(-1, 1, 28, 28), read("labels-idx1", 8).long()


def optimizer_of(model, foreach):
    """AdamW as starling-train has it: no decay of biases."""
    weights = [p for p in model.parameters() if p.dim() > 1]
    biases = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": weights, "weight_decay": 0.01}, {"params": biases, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, foreach=foreach)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=["mlp", "cnn"], default="mlp")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=400, help="that are timed")
    parser.add_argument("--warm-up-steps", type=int, default=20)
    parser.add_argument("--store", required=True, help="file through which the processes meet; new")
    parser.add_argument("--plain-update", action="store_true", help="AdamW without foreach")
    options = parser.parse_args()
    rank = int(os.environ.get("STARLING_RANK", os.environ.get("RANK", 0)))
    size = int(os.environ.get("STARLING_SIZE", os.environ.get("WORLD_SIZE", 1)))

    torch.set_num_threads(1)
    torch.manual_seed(0)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{options.store}", rank=rank, world_size=size)
    images, labels = load()
    model = DistributedDataParallel({"mlp": Mlp, "cnn": Cnn}[options.model](),
                                    gradient_as_bucket_view=True)
    optimizer = optimizer_of(model, not options.plain_update)
    loss_of = nn.CrossEntropyLoss()
    shuffle = torch.Generator().manual_seed(rank)

    def step():
        chosen = torch.randint(len(images), (options.batch,), generator=shuffle)
        data = images[chosen].float().mul_(1 / (255 * 0.353)).sub_(0.286 / 0.353)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(data), labels[chosen])
        value = loss.item()
        loss.backward()
        optimizer.step()
        return value

    for _ in range(options.warm_up_steps):
        step()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(options.steps):
        loss = step()
    dist.barrier()
    seconds = time.perf_counter() - begin
    if rank == 0:
        print(json.dumps({"workers": size, "model": options.model, "steps": options.steps,
                          "train_seconds": seconds,
                          "samples_per_second": size * options.batch * options.steps / seconds,
                          "step_seconds": seconds / options.steps, "loss": loss}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
