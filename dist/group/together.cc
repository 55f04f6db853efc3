#include "dist/group/together.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "dist/group/agreement.h"

namespace lockstep::dist {

namespace {

/// A rank that writes files to a slow disk is waited for; one that is lost is noticed at once.
constexpr std::chrono::hours kNoHurry{24};

/// What a rank tells the others begins with one of these.
constexpr char kResult = 'r';
constexpr char kDataError = 'd';
constexpr char kCheckpointError = 'c';
constexpr char kOutOfMemory = 'm';
constexpr char kOther = 'o';

char class_of(const std::exception& error) {
  if (dynamic_cast<const DataError*>(&error) != nullptr) return kDataError;
  if (dynamic_cast<const CheckpointError*>(&error) != nullptr) return kCheckpointError;
  const bool memory = dynamic_cast<const OutOfMemoryError*>(&error) != nullptr ||
                      dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return memory ? kOutOfMemory : kOther;
}

[[noreturn]] void throw_as(char kind, const std::string& message) {
  switch (kind) {
    case kDataError:
      throw DataError(message);
    case kCheckpointError:
      throw CheckpointError(message);
    case kOutOfMemory:
      throw OutOfMemoryError(message);
    default:
      throw Error(message);
  }
}

}  // namespace

std::vector<std::string> together(ProcessGroup* group, const std::function<std::string()>& part) {
  if (group == nullptr) return {part()};
  std::exception_ptr failure;
  std::string told;
  try {
    told = kResult + part();
  } catch (const DistError&) {
    throw;
  } catch (const std::exception& error) {
    failure = std::current_exception();
    told = class_of(error) + std::string(error.what());
  }
  std::vector<std::string> texts = all_gather_texts(*group, told, {.timeout = kNoHurry});
  if (failure) std::rethrow_exception(failure);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const char kind = texts[rank].front();
    if (kind != kResult) throw_as(kind, fmt::format("rank {}: {}", rank, texts[rank].substr(1)));
    texts[rank].erase(0, 1);
  }
  return texts;
}

}  // namespace lockstep::dist
