#pragma once

namespace lockstep::launcher {

class Verb;

/// Adds the subcommand `fields [PATH] [--search WORD]` to `parent`: what each field of a config
/// means, and which values it takes.
void add_config_fields(const Verb& parent);

}  // namespace lockstep::launcher
