#include "dist/group/failure.h"

#include <fmt/core.h>

#include <string_view>

namespace lockstep::dist {
namespace {

constexpr char kEndOfKind = '\x1f';

template <class E>
std::exception_ptr if_kind(std::string_view kind, const std::string& text) {
  return kind == E("").kind() ? std::make_exception_ptr(E(text)) : nullptr;
}

}  // namespace

bool is_stop(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const StoppedError&) {
    return true;
  } catch (...) {
    return false;
  }
}

std::string words_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

std::string failure_text(const DistError& error) {
  return error.kind() + std::string(1, kEndOfKind) + error.what();
}

std::exception_ptr exception_of(const Failure& failure, int self) {
  const size_t end = failure.text.find(kEndOfKind);
  if (end != std::string::npos) {
    const std::string_view kind = std::string_view(failure.text).substr(0, end);
    std::string text = failure.text.substr(end + 1);
    if (failure.rank != self) text += fmt::format("\nTold by rank {}.", failure.rank);
    if (auto error = if_kind<MismatchError>(kind, text)) return error;
    if (auto error = if_kind<TimeoutError>(kind, text)) return error;
    if (auto error = if_kind<PeerLostError>(kind, text)) return error;
    if (auto error = if_kind<BackendError>(kind, text)) return error;
    if (auto error = if_kind<StoppedError>(kind, text)) return error;
    return std::make_exception_ptr(DistError(text));
  }
  return std::make_exception_ptr(PeerLostError(fmt::format(
      "[dist] {} failed: {}",
      failure.rank == self ? "this rank" : fmt::format("rank {}", failure.rank), failure.text)));
}

}  // namespace lockstep::dist
