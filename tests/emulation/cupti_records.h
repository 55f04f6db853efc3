#pragma once

// CUPTI's records in buffers, as tests make and read them.

#include "core/cuda/cupti.h"

#ifdef LS_HAS_CUPTI

#include <cstdint>
#include <cstring>
#include <vector>

namespace lockstep::cuda {

/// A record of any kind, byte for byte.
using RecordBytes = std::vector<uint8_t>;
template <class Record>
RecordBytes bytes_of_record(const Record& record) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&record);
  return {bytes, bytes + sizeof(record)};
}

inline size_t size_of_record(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    default:
      return sizeof(CUpti_ActivityAPI);
  }
}

/// Puts the records into buffers that `lend` gives, and gives these to `take`. Returns the number
/// of records that found no buffer.
inline size_t deliver(const std::vector<RecordBytes>& records,
                      CUpti_BuffersCallbackRequestFunc lend,
                      CUpti_BuffersCallbackCompleteFunc take) {
  uint8_t* buffer = nullptr;
  size_t size = 0, used = 0, most = 0, dropped = 0;
  for (const RecordBytes& record : records) {
    if (buffer != nullptr && used + record.size() > size) {
      take(nullptr, 0, buffer, size, used);
      buffer = nullptr;
    }
    if (buffer == nullptr) {
      lend(&buffer, &size, &most);
      used = 0;
    }
    if (buffer == nullptr) {
      ++dropped;
      continue;
    }
    std::memcpy(buffer + used, record.data(), record.size());
    used += record.size();
  }
  if (buffer != nullptr) take(nullptr, 0, buffer, size, used);
  return dropped;
}

/// What cuptiActivityGetNextRecord does.
inline CUptiResult next_record(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  size_t at = 0;
  if (*record != nullptr) {
    at = static_cast<size_t>(reinterpret_cast<uint8_t*>(*record) - buffer) +
         size_of_record((*record)->kind);
  }
  if (at >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + at);
  return CUPTI_SUCCESS;
}

}  // namespace lockstep::cuda

#endif
