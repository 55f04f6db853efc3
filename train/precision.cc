#include "train/precision.h"

#include "configs/run.pb.h"

namespace lockstep::train {

Precision precision_of(const config::RunConfig& config) {
  if (config.precision() == config::BF16_MIXED) return Precision::kBF16Mixed;
  if (config.precision() == config::F16_MIXED) return Precision::kF16Mixed;
  return Precision::kF32;
}

AutocastGuard autocast_region(Precision precision, DeviceType type) {
  const DType dtype = precision == Precision::kF16Mixed ? DType::kF16 : DType::kBF16;
  return AutocastGuard(type, precision != Precision::kF32, dtype);
}

}  // namespace lockstep::train
