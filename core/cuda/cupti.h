#pragma once

// CUPTI's headers are a package of their own: without them nothing records what GPUs run.
#if __has_include(<cupti.h>)
#define LS_HAS_CUPTI 1
#include <cupti.h>

#include <string>
#include <vector>

#include "core/cuda/opened_library.h"

namespace lockstep::cuda {

/// The functions of CUPTI that are called here: those that record what devices do.
#define LS_CUPTI_FUNCTIONS(X)               \
  X(cuptiActivityRegisterCallbacks)         \
  X(cuptiActivityRegisterTimestampCallback) \
  X(cuptiActivityEnable)                    \
  X(cuptiActivityDisable)                   \
  X(cuptiActivityFlushAll)                  \
  X(cuptiActivityGetNextRecord)             \
  X(cuptiActivityGetNumDroppedRecords)      \
  X(cuptiSetThreadIdType)                   \
  X(cuptiGetCallbackName)                   \
  X(cuptiGetResultString)

/// Table of CUPTI's functions.
struct Cupti {
#define LS_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
  LS_CUPTI_FUNCTIONS(LS_CUPTI_MEMBER)
#undef LS_CUPTI_MEMBER
};

using LoadedCupti = OpenedLibrary<Cupti>;
using CuptiLibrary = LazyLibrary<Cupti>;

/// Opens the first usable file of `cupti_files`; it stays open until the process ends.
LoadedCupti load_cupti();
/// Fills the table from an opened library; `load_cupti` calls it.
LoadedCupti read_cupti(const std::string& file, const FindFunction& find);
/// Paths at which to look for the library: version 13 before 12, as for other libraries of CUDA
/// (core/base/cuda_library_files.h), and in the toolkit's folder extras/CUPTI.
std::vector<std::string> cupti_files();

/// The process's CUPTI.
CuptiLibrary& cupti();
/// For tests: makes `cupti()` return `library`, which is never destroyed. Returns the previous one.
CuptiLibrary& set_cupti(CuptiLibrary& library);

}  // namespace lockstep::cuda

#endif
