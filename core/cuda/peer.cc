#include "core/cuda/peer.h"

#include "core/cuda/error.h"
#include "core/cuda/runtime.h"

namespace lockstep::cuda {

bool reaches_peer(int device, int peer) {
  const Context& from = runtime().context(device);
  int can = 0;
  LS_CUDA(from.driver(), cuDeviceCanAccessPeer, &can, from.device(),
          runtime().context(peer).device());
  return can != 0;
}

void open_peer(int device, int peer) {
  Context& from = runtime().context(device);
  const ContextGuard guard(from);
  const CUresult result = from.driver().cuCtxEnablePeerAccess(runtime().context(peer).get(), 0);
  if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
    check(from.driver(), result, "cuCtxEnablePeerAccess");
  }
}

void copy_between(const Stream& stream, void* to, int to_device, const void* from, int from_device,
                  size_t bytes) {
  Context& own = runtime().context(stream.device.index);
  auto* const queue = static_cast<CUstream>(runtime().native(stream));
  const ContextGuard guard(own);
  LS_CUDA(own.driver(), cuMemcpyPeerAsync, reinterpret_cast<CUdeviceptr>(to),
          runtime().context(to_device).get(), reinterpret_cast<CUdeviceptr>(from),
          runtime().context(from_device).get(), bytes, queue);
}

}  // namespace lockstep::cuda
