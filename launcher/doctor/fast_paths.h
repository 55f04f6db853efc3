#pragma once

#include <string>
#include <vector>

#include "core/tensor/device.h"
#include "core/tensor/dtype.h"
#include "train/report/health.h"

namespace lockstep::launcher {

/// Whether the calls that take most of a training step go the fast way on this GPU: products with
/// what belongs to them (cuBLASLt's epilogues), attention and convolutions (cuDNN), forward and
/// backward. Each is called once; those that go another way are a warning that names them with the
/// reason. `name` is "cuda:0".
std::vector<train::Check> fast_path_checks(const std::string& name, Device device, DType half);

}  // namespace lockstep::launcher
