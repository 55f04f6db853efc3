#pragma once

namespace lockstep::cuda {

/// Whether the first device can reach the second one's memory by itself, over NVLink or PCIe; else
/// copies between them go through the memory of the cpu. Throws DeviceError.
bool reaches_peer(int device, int peer);

/// Lets `device` reach the memory of `peer`, what there is and what will be allocated, for the life
/// of the process. Copies between devices do so themselves. Throws DeviceError.
void open_peer(int device, int peer);

}  // namespace lockstep::cuda
