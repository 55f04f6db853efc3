#include "dist/group/common_end.h"

#include <fmt/core.h>

namespace lockstep::dist {

namespace {
/// If this process itself was stopped the limit may have passed before its threads could run again.
constexpr std::chrono::seconds kAfterAStop(1);
}  // namespace

void CommonEnd::join(std::thread& thread, const std::function<void(const std::string&)>& tell) {
  const std::future<void> done = done_.get_future();
  begun_.get_future().wait();
  const std::chrono::milliseconds limit = limit_;
  if (done.wait_for(limit) == std::future_status::ready ||
      done.wait_for(kAfterAStop) == std::future_status::ready) {
    thread.join();
    return;
  }
  if (tell) {
    tell(
        fmt::format("the end of all ranks takes more than {} s: another rank is "
                    "stopped or cut off. This rank ends without it",
                    std::chrono::duration<double>(limit).count()));
  }
  thread.detach();  // the call that it waits in cannot be interrupted
}

}  // namespace lockstep::dist
