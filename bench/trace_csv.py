#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a synthetic rocprofv3 run of about SIZE megabytes: FOLDER/hip_api_trace.csv and FOLDER/kernel_trace.csv.

usage: trace_csv.py SIZE FOLDER

Rows come as the tool writes them: calls by their ends, kernels not sorted. The same bytes every time.
"""
import os
import sys


def main():
    if len(sys.argv) != 3 or not sys.argv[1].isdigit():
        sys.exit("usage: trace_csv.py SIZE FOLDER")
    size, folder = int(sys.argv[1]) * 1000 * 1000, sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    names = [
        f"void kernel_{i}<float, {i}>(float const*, float*, long, HIP_vector_type<unsigned int, 3u>)"
        for i in range(200)
    ]
    calls = open(os.path.join(folder, "hip_api_trace.csv"), "w", encoding="ascii")
    kernels = open(os.path.join(folder, "kernel_trace.csv"), "w", encoding="ascii")
    calls.write('"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"\n')
    kernels.write(
        '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
        '"Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count",'
        '"Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
    )
    now, number, written, held = 1_500_000_000_000_000, 1, 0, []
    while written < size:
        call_rows, kernel_rows = [], []
        for _ in range(10000):
            launch = f'"HIP_RUNTIME_API_EXT","hipLaunchKernel",4711,{4711 + number % 4},{number},{now},{now + 2100}\n'
            call_rows.append(
                f'"HIP_RUNTIME_API_EXT","hipGetLastError",4711,{4711 + number % 4},{number + 1},{now + 2200},{now + 2230}\n'
            )
            call_rows.append(launch)
            held.append(
                f'"KERNEL_DISPATCH","Agent 4",{number % 4 + 1},{number % 8 + 1},{4711 + number % 4},{number},{number % 200},'
                f'"{names[number % 200]}",{number},{now + 5000},{now + 5000 + number % 7000},0,0,32,0,128,256,1,1,{256 * (number % 500 + 1)},1,1\n'
            )
            if len(held) == 64:
                kernel_rows.extend(reversed(held))
                held.clear()
            now += 3000
            number += 2
        calls.write("".join(call_rows))
        kernels.write("".join(kernel_rows))
        written += sum(map(len, call_rows)) + sum(map(len, kernel_rows))
    kernels.write("".join(held))


if __name__ == "__main__":
    main()
