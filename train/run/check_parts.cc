#include "train/run/check_parts.h"

#include <memory>

#include "autograd/grad_mode.h"
#include "configs/run.pb.h"
#include "train/build.h"
#include "train/step_share.h"

namespace lockstep::train {

void check_parts(const config::RunConfig& config, int64_t ranks) {
  const StepShare share = share_of_step(config.train(), 0, ranks);
  const std::unique_ptr<Task> task = build_task(config, share);
  (void)build_optimizer(config, task->model().named_parameters());
  const DefaultDeviceGuard on_device(device_of(config));
  const NoGradGuard no_grad;
  (void)task->forward(0, share.first_sample, share.micro_batch_size);
}

}  // namespace lockstep::train
