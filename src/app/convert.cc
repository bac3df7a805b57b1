#include "app/convert.h"

#include "app/failure.h"
#include "app/progress.h"
#include "app/standard_output.h"
#include "app/stop_signals.h"

namespace braid {

int convert_model(const ConvertFlags& flags) {
  StopSignals signals;
  ProgressDisplay display(display_on_standard_error(flags.verbosity == Verbosity::kQuiet));
  try {
    convert(flags.options,
            {.progress = [&](const Progress& p) { display.show(p); },
             .warning = [&](const std::string& sentence) { display.say("warning: " + sentence); },
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
