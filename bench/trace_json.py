#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a trace as PyTorch's profiler does, of about so many megabytes: operators, launches, kernels on four streams.

usage: trace_json.py MEGABYTES FILE
"""
import sys

NAMES = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>)",
    "ampere_sgemm_128x64_nn",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*, float const*, int)",
]


def main():
    size, path = int(sys.argv[1]) * 1_000_000, sys.argv[2]
    with open(path, "w", encoding="utf-8") as file:
        file.write('{\n  "schemaVersion": 1,\n  "traceEvents": [\n')
        written, n, now = 0, 0, 1_700_000_000_000_000
        while written < size:
            lines = []
            for _ in range(200):
                n, now = n + 1, now + 20
                stream = 7 + n % 4
                lines.append(
                    f"""  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::op{n % 50}", "pid": 4711, "tid": 4711,
    "ts": {now}.125, "dur": 18.250,
    "args": {{
      "External id": {n},"Record function id": 0, "Ev Idx": {n}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711,
    "ts": {now + 2}.500, "dur": 6.125,
    "args": {{
      "External id": {n}, "cbid": 211, "correlation": {n}
    }}
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{NAMES[n % len(NAMES)]}", "pid": 0, "tid": {stream},
    "ts": {now + 10}.250, "dur": {5 + n % 60}.750,
    "args": {{
      "External id": {n}, "queued": 0, "device": 0, "context": 1, "stream": {stream}, "correlation": {n},
      "registers per thread": 16, "shared memory": 0, "blocks per SM": 0.009259, "warps per SM": 0.037037,
      "grid": [{1 + n % 300}, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 0
    }}
  }},
"""
                )
            text = "".join(lines)
            file.write(text)
            written += len(text)
        file.write(
            '  {"ph": "M", "name": "process_name", "pid": 4711, "tid": 0, "ts": 1, "args": {"name": "python3"}}\n  ]\n}\n'
        )


if __name__ == "__main__":
    main()
