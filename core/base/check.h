#pragma once

// For .cc files only, because it includes fmt. Headers throw through functions declared in them.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/error.h"

/// For user errors: throws `Type` with the formatted message unless `condition` holds.
/// The message is built only on failure.
#define LS_CHECK(condition, Type, ...)                    \
  do {                                                    \
    if (!(condition)) [[unlikely]] {                      \
      throw ::lockstep::Type(::fmt::format(__VA_ARGS__)); \
    }                                                     \
  } while (false)

/// For bugs in Lockstep: throws InternalError with the source location and the condition.
#define LS_ASSERT(condition)                                                                 \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      throw ::lockstep::InternalError(                                                       \
          ::fmt::format("[internal] {}:{}: {} does not hold. Please report this.", __FILE__, \
                        __LINE__, #condition));                                              \
    }                                                                                        \
  } while (false)
