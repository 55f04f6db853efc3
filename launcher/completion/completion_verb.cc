#include <fmt/core.h>

#include <memory>

#include "configs/field_list.h"
#include "launcher/command_line.h"
#include "launcher/completion/bash.h"
#include "launcher/completion/fish.h"
#include "launcher/completion/zsh.h"
#include "launcher/verbs.h"

namespace lockstep::launcher {

void add_completion(const Verb& app) {
  const Verb verb =
      app.verb("completion", "Completion of verbs, options and config fields for shells");
  verb.requires_verb();
  verb.verb("bash", "Print the script: source <(lockstep completion bash)").runs([app] {
    fmt::print("{}", bash_completion(app));
  });
  verb.verb("zsh", "Print the script: source <(lockstep completion zsh)").runs([app] {
    fmt::print("{}", zsh_completion(app));
  });
  verb.verb("fish", "Print the script: lockstep completion fish | source").runs([app] {
    fmt::print("{}", fish_completion(app));
  });
  auto prefix = std::make_shared<std::string>();
  const Verb paths =
      verb.verb("paths", "Print the config fields and values that start with a text");
  paths.option("prefix", *prefix, "Such as train. or schedule.kind=");
  paths.runs([prefix] {
    for (const std::string& path : config::completions(*prefix)) fmt::print("{}\n", path);
  });
}

}  // namespace lockstep::launcher
