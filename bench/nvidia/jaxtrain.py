#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A batch program of JAX that knows nothing of gpreempt: a network that is trained, until SIGTERM.

    jaxtrain.py train --progress FILE       steps done at moments (as be)

Exact: training begins anew from the same state every few steps, and the losses and the weights of each such round must be those of the first, bit for bit. --small: sizes for the CPU.
"""
import argparse
import os
import signal
import struct
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # others need memory, too
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_deterministic_ops=true"
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

AHEAD, ROUND = 3, 8  # steps launched ahead of the GPU, of a round
RATE = 1e-4  # of a weight, each step
ended = []


def loss_of(weights, data):
    x = data
    for first, second in weights:
        x = x + jax.nn.gelu(x @ first) @ second
    return jnp.mean(jnp.square((x - jnp.roll(data, 1, 0)).astype(jnp.float32)))


def step(weights, data):
    """Each weight by the same amount, which bfloat16 can show: with the slopes themselves it lost all or became infinite."""
    loss, slopes = jax.value_and_grad(loss_of)(weights, data)
    return (
        jax.tree_util.tree_map(
            lambda weight, slope: weight - (RATE * jnp.sign(slope)).astype(weight.dtype), weights, slopes
        ),
        loss,
    )


def differs(found, reference):
    """Whether any bit does: compared as whole numbers, so that what is no number is equal to itself."""

    def one(a, b):
        kind = jnp.uint16 if a.dtype.itemsize == 2 else jnp.uint32
        return jnp.any(jax.lax.bitcast_convert_type(a, kind) != jax.lax.bitcast_convert_type(b, kind))

    return jnp.any(jnp.stack(jax.tree_util.tree_leaves(jax.tree_util.tree_map(one, found, reference))))


def train(arguments):
    layers, width, batch = (2, 16, 8) if arguments.small else (8, 4096, 4096)
    dtype = jnp.float32 if arguments.small else jnp.bfloat16
    keys = jax.random.split(jax.random.PRNGKey(1), 2 * layers + 1)
    first = [
        tuple(
            (jax.random.normal(keys[2 * i + k], shape) * 0.5 / shape[0] ** 0.5).astype(dtype)
            for k, shape in enumerate(((width, 4 * width), (4 * width, width)))
        )
        for i in range(layers)
    ]
    data = jax.random.normal(keys[-1], (batch, width)).astype(dtype)
    run, compare = jax.jit(step), jax.jit(differs)

    def one_round():
        weights, losses = first, []
        for _ in range(ROUND):
            weights, loss = run(weights, data)
            losses.append(loss)
            yield loss, None
        yield None, (weights, losses)

    reference = [last for _, last in one_round() if last][0]
    jax.block_until_ready(reference)
    wrong, count, done, flying = [], 0, 0, []
    jax.block_until_ready(compare(reference, reference))
    with open(arguments.progress, "wb", buffering=0) as file:
        file.write(struct.pack("=QQ", time.monotonic_ns(), done))
        print("ready", flush=True)
        while not ended:
            for loss, last in one_round():
                if last:
                    wrong.append(compare(last, reference))
                    continue
                count += 1
                flying.append(loss)
                if len(flying) > AHEAD:
                    jax.block_until_ready(flying.pop(0))
                    done += 1
                    file.write(struct.pack("=QQ", time.monotonic_ns(), done))
                if ended:
                    break
    bad = sum(bool(one) for one in wrong)
    losses = [float(loss) for loss in reference[1]]
    shown = all(abs(loss) < 1e30 for loss in losses) and len(set(losses)) > 1  # otherwise this would be no check
    exact = not bad and shown
    print(
        "%d steps, %d of %d rounds differ%s: %s"
        % (
            count,
            bad,
            len(wrong),
            "" if shown else ", losses that show nothing: " + " ".join("%g" % loss for loss in losses),
            "exact" if exact else "WRONG",
        ),
        flush=True,
    )
    return 0 if exact else 3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("role", choices=("train",))
    parser.add_argument("--progress", default=os.devnull)
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    if not jax:
        sys.exit("jaxtrain.py: there is no JAX here")
    if not arguments.small and jax.default_backend() != "gpu":
        sys.exit("jaxtrain.py: JAX sees no GPU")
    signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    return train(arguments)


if __name__ == "__main__":
    sys.exit(main())
