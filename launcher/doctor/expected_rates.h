#pragma once

#include <string>

#include "core/cuda/device_facts.h"
#include "train/report/health.h"

/// The rates that a GPU should reach, from what its driver tells of it.
namespace lockstep::launcher {

/// Bytes a second between the GPU and its memory: two transfers a clock over the whole bus.
double memory_peak(const cuda::DeviceFacts& facts);

/// Kinds of matrix products by what their factors are rounded to.
enum class ProductKind { kF32, kTf32, kHalf };

/// FLOP a second of dense products with sums in f32 if the processors run at `clock_mhz`; 0 for
/// GPUs that the table does not have.
double product_peak(const cuda::DeviceFacts& facts, ProductKind kind, double clock_mhz);

/// Bytes a second in one direction over PCIe, before the protocol's share; 0 if unknown.
double pcie_peak(unsigned generation, unsigned width);

/// A rate that was measured, beside the one that was expected.
struct Rate {
  std::string subject;
  double measured = 0;
  double expected = 0;   ///< 0 if it is not known
  std::string unit;      ///< "GB/s"
  double unit_size = 1;  ///< 1e9
  std::string how;       ///< "f32 products of side 8192"
  std::string advice;    ///< what to look at if it is low
};

/// "3,980 GB/s, 81 % of 4,917": a warning below 70 %, a failure below 30 %.
train::Check rate_check(const Rate& rate);

/// Whether the device is one of the emulation, whose rates say nothing.
bool is_emulated(const cuda::DeviceFacts& facts);

}  // namespace lockstep::launcher
