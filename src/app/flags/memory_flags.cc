#include "app/flags/flag_groups.h"

#include "app/flags/flag_values.h"
#include "pipeline/planner/devices.h"

namespace braid {
namespace {

Quantize quantize_named(const std::string& flag, const std::string& text) {
  return choice<Quantize>(flag, text,
                          {{"none", Quantize::kNone},
                           {"auto", Quantize::kNone},  // a budget decides
                           {"int8", Quantize::kInt8},
                           {"int8-v1", Quantize::kInt8V1},
                           {"int8-dynamic", Quantize::kInt8Dynamic},
                           {"fp8", Quantize::kFloat8}});
}

std::vector<std::string> patterns(const std::string& flag, const std::string& text) {
  std::vector<std::string> list;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const auto end = std::min(text.find(',', begin), text.size());
    require(end > begin, flag, " should be names of layers, separated by commas, it is ",
            in_quotes(text));
    list.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

OffloadMode mode_named(const std::string& flag, const std::string& text) {
  return choice<OffloadMode>(flag, text,
                             {{"none", OffloadMode::kNone},
                              {"model", OffloadMode::kModel},
                              {"block", OffloadMode::kBlock},
                              {"leaf", OffloadMode::kLeaf},
                              {"sequential", OffloadMode::kSequential}});
}

void add_offload_modes(FlagReader& read, Offload& o, Budget::Fixed& fixed) {
  read.text("--offload", "HOW", "Memory",
            "Which weights are on the device at a time: none (all are,\n"
            "always), model (one part), block (some blocks), leaf (some\n"
            "layers), sequential (one layer). Default: none",
            [&](const std::string& flag, const std::string& text) {
              o.transformer = o.text = o.vae = mode_named(flag, text);
              fixed.transformer = fixed.text = fixed.vae = true;
            });
  read.text("--offload-text", "HOW", "Memory", "The same of the text encoders alone",
            [&](const std::string& flag, const std::string& text) {
              o.text = mode_named(flag, text);
              fixed.text = true;
            });
  read.text("--offload-vae", "HOW", "Memory", "The same of the autoencoder alone",
            [&](const std::string& flag, const std::string& text) {
              o.vae = mode_named(flag, text);
              fixed.vae = true;
            });
}

void add_offload_flags(FlagReader& read, Offload& o, Budget::Fixed& fixed) {
  add_offload_modes(read, o, fixed);
  read.text("--offload-group", "N", "Memory", "Blocks that come and go together. Default: 1",
            into(o.blocks, whole_from(1, 1024)));
  read.text("--prefetch", "N", "Memory", "Groups that are copied ahead, 0 to 64. Default: 1",
            [&](const std::string& flag, const std::string& text) {
              o.prefetch = int(whole_number(flag, text, 0, 64));
              fixed.prefetch = true;
            });
  read.text("--resident", "N", "Memory",
            "Groups of the transformer that stay on the device, or all.\n"
            "Default: 0",
            [&](const std::string& flag, const std::string& text) {
              o.resident = text == "all" ? -1 : int(whole_number(flag, text, 0, 100'000));
              fixed.resident = true;
            });
  read.text("--residency", "WHICH", "Memory",
            "strided (evenly spread: their time hides copies) or leading\n"
            "(the first). Default: strided",
            [&](const std::string& flag, const std::string& text) {
              o.residency = choice<Residency>(
                  flag, text, {{"strided", Residency::kStrided}, {"leading", Residency::kLeading}});
            });
  read.text(
      "--pin", "WHEN", "Memory",
      "always (copies are fastest), on-the-fly (takes less memory)\n"
      "or never. Not for the CPU. Default: always",
      [&](const std::string& flag, const std::string& text) {
        o.pin = choice<Pin>(
            flag, text,
            {{"always", Pin::kAlways}, {"on-the-fly", Pin::kOnTheFly}, {"never", Pin::kNever}});
      });
}

void add_disk_flags(FlagReader& read, Offload& o) {
  read.path("--offload-dir", "DIR", "Memory",
            "Keep offloaded weights in files there, not in memory. They\n"
            "serve later runs and other processes too",
            o.folder);
  read.text("--disk-reads", "HOW", "Memory",
            "How these are read: direct (past the system's cache), mapped\n"
            "(through it) or auto (what is in it from there, the rest past\n"
            "it). Default: auto",
            [&](const std::string& flag, const std::string& text) {
              o.reads = choice<DiskReads>(flag, text,
                                          {{"auto", DiskReads::kAuto},
                                           {"direct", DiskReads::kDirect},
                                           {"mapped", DiskReads::kMapped}});
            });
}

}  // namespace

void add_memory_flags(FlagReader& read, Memory& m) {
  add_quantize_flags(read, m);
  add_offload_flags(read, m.offload, m.budget.fixed);
  add_disk_flags(read, m.offload);
}

void add_budget_flags(FlagReader& read, Memory& m) {
  const auto bytes = [](const std::string& flag, const std::string& text) {
    return std::int64_t(bytes_named(flag, text));
  };
  read.text("--memory", "BYTES", "Memory",
            "Of each device, as 6GB or 6GiB (on a CPU: resident in this\n"
            "process). Chooses --offload, --prefetch, --resident and\n"
            "--vae-tiling so that this is enough, and says what it chose;\n"
            "those that are given stay",
            [&m, bytes](const std::string& flag, const std::string& text) {
              m.budget.device = bytes(flag, text);
            });
  read.text("--host-memory", "BYTES", "Memory",
            "The same of what is resident in this process; uses files in\n"
            "--offload-dir where it is needed",
            [&m, bytes](const std::string& flag, const std::string& text) {
              m.budget.host = bytes(flag, text);
            });
}

void check_budget(const Memory& m) {
  const auto& b = m.budget;
  require(
      b.is_set() || (!b.may_quantize && !b.may_quantize_text),
      "--quantize auto takes 8 bits where braid generate has a budget and nothing else fits it: ",
      "say --memory or --host-memory there, and int8 or none here");
}

void add_quantize_flags(FlagReader& read, Memory& m) {
  read.text("--quantize", "FORM", "Memory",
            "Of the transformer's weights: none, int8 (half the memory of\n"
            "bfloat16), int8-v1 (with coarser scales, as older tools make\n"
            "it), int8-dynamic (activations too), fp8 (activations too\n"
            "where a GPU multiplies them) or auto (8 bits where --memory\n"
            "needs them). Default: none",
            [&](const std::string& flag, const std::string& text) {
              m.budget.may_quantize = text == "auto";
              m.quantize = quantize_named(flag, text);
            });
  read.text("--quantize-text", "FORM", "Memory", "The same of the large text encoders",
            [&](const std::string& flag, const std::string& text) {
              m.budget.may_quantize_text = text == "auto";
              m.quantize_text = quantize_named(flag, text);
            });
  read.text("--quantize-skip", "LAYERS", "Memory",
            "Layers of the transformer that stay as they are, by commas;\n"
            "* stands for a part: img_in,double_blocks.*.img_mod.lin",
            [&](const std::string& flag, const std::string& text) {
              m.keep_dense = patterns(flag, text);
            });
}

}  // namespace braid
