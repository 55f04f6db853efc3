#include "core/cuda/peer.h"

#include "core/cuda/runtime.h"

namespace lockstep::cuda {

bool reaches_peer(int device, int peer) { return runtime().reaches_peer(device, peer); }

void open_peer(int device, int peer) { runtime().open_peer(device, peer); }

}  // namespace lockstep::cuda
