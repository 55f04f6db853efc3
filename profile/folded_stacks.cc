#include "profile/folded_stacks.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/base/check.h"

namespace lockstep::profile {

namespace {

/// A name as a frame: the format's separators are replaced.
std::string frame(std::string name) {
  std::ranges::replace(name, ';', ':');
  std::ranges::replace(name, '\n', ' ');
  return name;
}

}  // namespace

std::string folded_stacks(const Profile& profile) {
  std::vector<std::string> stack_of(profile.spans.size());
  std::map<std::string, int64_t> self;
  for (size_t i = 0; i < profile.spans.size(); ++i) {
    const ProfileSpan& span = profile.spans[i];
    std::string& stack = stack_of[i];
    // A parent stands before what is inside it.
    stack = span.parent != ProfileSpan::kNone ? stack_of[static_cast<size_t>(span.parent)]
                                              : frame(profile.threads[span.thread].name);
    if (span.kind == SpanKind::kStep) continue;
    stack += ";" + frame(span.name);
    if (span.self_ns > 0) self[stack] += span.self_ns;
  }
  std::string text;
  for (const auto& [stack, ns] : self) text += fmt::format("{} {}\n", stack, ns);
  return text;
}

}  // namespace lockstep::profile
