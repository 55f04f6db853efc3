#pragma once

#include <string>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace lockstep::profile {

/// Rates that a device reaches at best, measured by large calls of this library's own operators.
struct MachinePeaks {
  double f32_flops = 0;         ///< per second, of a square product
  double bf16_flops = 0;        ///< the same with factors of bf16
  double bytes_per_second = 0;  ///< read and written by an addition of tensors larger than caches

  /// Operations per second in arithmetic of `dtype`: that of bf16 for halves, else of f32.
  double flops(DType dtype) const { return size_of(dtype) == 2 ? bf16_flops : f32_flops; }
};

/// Measures `device` in about a second. Nothing else should run meanwhile.
MachinePeaks measure_peaks(Device device);

/// Writes the rates as a JSON object; reads such a file. Throw DataError.
void write_peaks(const std::string& path, const MachinePeaks& peaks);
MachinePeaks read_peaks(const std::string& path);

}  // namespace lockstep::profile
