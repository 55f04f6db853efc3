#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/base/ref.h"
#include "core/tensor/storage.h"
#include "dist/nccl/nccl_job.h"

namespace lockstep::dist {

/// Allocates memory by ncclMemAlloc on the device of a job, and registers it with a communicator:
/// as a window of symmetric memory where the library has ncclCommWindowRegister (2.27), else by
/// ncclCommRegister. NCCL's operations on it then need no copies to buffers of their own, where the
/// machine allows that.
///
/// NCCL maps such memory into other processes by its first physical allocation, so that memory of
/// the caching allocator, which consists of many, must not be registered.
///
/// Freeing waits for the current stream of this call and for those that were recorded as users, and
/// ends the registration first. Once the communicator has ended there is none to end.
///
/// Collective: `agree` exchanges the ranks' reasons why memory is not there, "" for none, and
/// returns the first, in the same way on all ranks. The result is null if there is one. Throws the
/// error of the communicator if it fails.
Ref<Storage> registered_nccl_memory(const NcclJob& job, std::shared_ptr<NcclCommunicator> nccl,
                                    size_t bytes, const NcclWait& wait,
                                    const std::function<std::string(const std::string&)>& agree);

}  // namespace lockstep::dist
