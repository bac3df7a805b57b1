#include "app/commands/commands.h"

#include "app/machine/bundled_model.h"
#include "app/machine/stop_signals.h"
#include "app/print/failure.h"
#include "app/print/progress.h"
#include "app/print/standard_output.h"

namespace braid {
namespace {

ConvertOptions with_published(ConvertOptions options) {
  options.published = with_bundled({.model = options.model}).published;
  return options;
}

}  // namespace

int convert_model(const ConvertFlags& flags) {
  StopSignals signals;
  ProgressDisplay display(display_on_standard_error(flags.verbosity == Verbosity::kQuiet));
  for (const auto& sentence : flags.unused) display.say("warning: " + sentence);
  try {
    convert(with_published(flags.options), {.progress = [&](const Progress& p) { display.show(p); },
                                            .warning =
                                                [&](const std::string& sentence) {
                                                  display.say("warning: " + with_flags(sentence));
                                                },
                                            .stop = signals.token()});
  } catch (const Cancelled& cancelled) {
    display.clear();
    display.say(cancelled.what());
    return kSignalled + signals.received();
  }
  display.finish();
  print(flags.options.out.string() + "\n");
  return kSuccess;
}

}  // namespace braid
