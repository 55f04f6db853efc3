#include "nn/statistics_log.h"

#include <utility>

#include "core/base/check.h"
#include "nn/module.h"

namespace lockstep::nn {

StatisticsLog::StatisticsLog(Module& model) : model_(model) { model_.log_statistics(this); }

StatisticsLog::~StatisticsLog() { model_.log_statistics(nullptr); }

void StatisticsLog::move(Tensor running, Tensor found, double momentum) {
  LS_ASSERT(running.dim() == 1 && found.dim() == 1 && running.numel() == found.numel());
  LS_CHECK(running.dtype() == DType::kF32, DTypeError,
           "[statistics] a running statistic has another dtype: expected float32, got {}.",
           to_string(running.dtype()));
  LS_ASSERT(found.dtype() == DType::kF64);
  moves_.push_back({std::move(running), std::move(found), momentum});
}

}  // namespace lockstep::nn
