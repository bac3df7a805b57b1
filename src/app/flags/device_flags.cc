#include "app/flags/flag_groups.h"

#include "app/flags/flag_values.h"
#include "app/words/readable.h"
#include "base/error.h"

namespace braid {

void add_devices_flag(FlagReader& read, PipelineOptions& options) {
  read.text("--devices", "LIST", "Machine",
            "One device per rank, instead of --device, such as cuda:0-3,\n"
            "cuda:0,cuda:0 or cuda:0-1,cpu; a single device serves all ranks.\n"
            "Ranks may share a device",
            [&](const std::string& flag, const std::string& text) {
              require(!read.given().contains("--device"),
                      "both --device and --devices were given: give one of them");
              options.devices = split_at_commas(text);
              for (const auto& device : options.devices)
                require(!device.empty(), flag, " should be devices separated by commas, ", "it is ",
                        in_quotes(text));
            });
}

void add_graph_flag(FlagReader& read, PipelineOptions& options) {
  read.text("--graph", "WHEN", "Machine",
            "auto or off: record a step once and let the device replay it,\n"
            "where possible. Default: auto",
            [&](const std::string& flag, const std::string& text) {
              options.graphs =
                  choice<Graphs>(flag, text, {{"auto", Graphs::kAuto}, {"off", Graphs::kOff}});
            });
}

void add_text_stream_flag(FlagReader& read, PipelineOptions& options) {
  read.text("--text-stream", "WHICH", "Machine",
            "shared or own: own runs the text half of double blocks on a second\n"
            "stream of the GPU, beside the image half. Not measured yet.\n"
            "Default: shared",
            [&](const std::string& flag, const std::string& text) {
              options.text_stream = choice<TextStream>(
                  flag, text, {{"shared", TextStream::kShared}, {"own", TextStream::kOwn}});
            });
}

}  // namespace braid
