#include "launcher/version_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/build_identity.h"
#include "core/cuda/availability.h"
#include "dist/transport/mpi_transport.h"

namespace lockstep::launcher {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

/// Instruction sets that some kernels are compiled for a second and third time, and chosen at run
/// time. tests/launcher/version_test.cc compares them with the kernels' attributes.
Json variants() {
#if defined(__x86_64__) && defined(__OPTIMIZE__)
  return {"avx512f,avx512bw,avx512dq,avx512vl", "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16"};
#else
  return Json::array();
#endif
}

std::string baseline([[maybe_unused]] const BuildFacts& facts) {
#if defined(__x86_64__) && defined(__AVX2__) && defined(__FMA__) && defined(__BMI2__)
  return "x86-64-v3";
#else
  return facts.processor;
#endif
}

}  // namespace

std::string version_json(const BuildFacts& facts) {
  Json json;
  json["version"] = LOCKSTEP_VERSION;
  json["commit"] = text_or_null(facts.commit);
  json["modified"] = facts.commit.empty() ? Json() : Json(facts.modified);
  json["build"] = build_identity();
  json["compiler"] = facts.compiler;
  json["cxx_standard"] = __cplusplus / 100 % 100;
  json["build_type"] = text_or_null(facts.build_type);
  json["instruction_sets"] = {{"baseline", baseline(facts)}, {"variants", variants()}};
  // The relocatable archive has the same program with a library without MPI, so that is asked.
  json["parts"] = {{"cuda", cuda::availability().compiled ? Json(facts.cuda) : Json()},
                   {"mpi", dist::has_mpi() ? Json(facts.mpi) : Json()},
                   {"onednn", text_or_null(facts.onednn)},
                   {"lapack", text_or_null(facts.lapack)},
                   {"zstd", text_or_null(facts.zstd)},
                   {"protobuf", text_or_null(facts.protobuf)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep::launcher
