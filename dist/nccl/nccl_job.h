#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include "core/base/error.h"
#include "dist/group/communicator.h"
#include "dist/nccl/nccl_group.h"
#include "dist/nccl/nccl_heartbeat.h"
#include "dist/nccl/nccl_launcher.h"
#include "dist/nccl/nccl_watch.h"

namespace lockstep::dist {

/// State shared by a rank's groups that are made from one another.
struct NcclJob {
  std::shared_ptr<Communicator> communicator;
  std::shared_ptr<const NcclLibrary> library;
  std::shared_ptr<const NcclDevice> device;
  NcclOptions options;
  std::shared_ptr<NcclLauncher> launcher = std::make_shared<NcclLauncher>();
  std::shared_ptr<NcclHeartbeat> heartbeat =
      std::make_shared<NcclHeartbeat>(communicator, options.heartbeat_limit);

  /// Returns a wait that a failure of the job ends.
  NcclWait wait(const char* op, std::string what, NcclWait::Clock::duration limit) const {
    return {op, std::move(what), NcclWait::Clock::now() + limit, [job = communicator] {
              if (const std::exception_ptr failure = job->failure())
                std::rethrow_exception(failure);
            }};
  }

  /// Calls `body`; an error makes the job fail, and the job's failure is thrown as on every rank.
  template <class F>
  auto fail_job_on_error(F body) const {
    try {
      return body();
    } catch (const DistError& error) {
      std::rethrow_exception(fail_job(*communicator, error));
    } catch (const std::exception& error) {
      (void)fail_job(*communicator, BackendError(error.what()));
      throw;
    }
  }
};

}  // namespace lockstep::dist
