#include "core/cuda/device_facts.h"

#include <fmt/format.h>

#include <array>

#include "core/cuda/error.h"
#include "core/cuda/runtime.h"

namespace lockstep::cuda {

namespace {

/// "8a1c1b9e-0f0e-1234-5678-9abcdef01234"
std::string uuid_text(const CUuuid& uuid) {
  std::string text;
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

}  // namespace

DeviceFacts device_facts(int device) {
  const Context& context = runtime().context(device);
  const Driver& driver = context.driver();
  DeviceFacts facts;
  std::array<char, 256> text{};
  LS_CUDA(driver, cuDeviceGetName, text.data(), static_cast<int>(text.size()), context.device());
  facts.name = text.data();
  text = {};
  LS_CUDA(driver, cuDeviceGetPCIBusId, text.data(), static_cast<int>(text.size()),
          context.device());
  facts.bus_id = text.data();
  CUuuid uuid{};
  // Of a slice it is the slice's own.
  LS_CUDA(driver, cuDeviceGetUuid, &uuid, context.device());
  facts.uuid = uuid_text(uuid);
  facts.major = context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  facts.minor = context.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  facts.processors = context.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  facts.clock_mhz = context.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1e3;
  facts.memory_clock_mhz = context.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1e3;
  facts.memory_bus_bits = context.attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  facts.multicast = context.attribute(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED) != 0;
  facts.memory_bytes = runtime().memory(device).total();
  return facts;
}

}  // namespace lockstep::cuda
