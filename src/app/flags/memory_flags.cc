#include "app/flags/flag_groups.h"

#include "app/flags/option_names.h"
#include "pipeline/devices/specs.h"
#include "pipeline/memory/presets.h"

namespace braid {
namespace {

Quantize quantize_named(const std::string& flag, const std::string& text) {
  auto names = kQuantizeForms;
  names.insert(names.begin() + 1, {"auto", Quantize::kNone});  // a budget decides
  return choice(flag, text, names);
}

std::vector<std::string> patterns(const std::string& flag, const std::string& text) {
  auto list = split_at_commas(text);
  for (const auto& layer : list)
    require(!layer.empty(), flag, " should be names of layers, separated by commas, it is ",
            in_quotes(text));
  return list;
}

OffloadMode mode_named(const std::string& flag, const std::string& text) {
  return choice(flag, text, kOffloadModes);
}

void add_offload_modes(FlagReader& read, Offload& o, StatedMemory& stated) {
  read.text("--offload", "HOW", "Memory",
            "Which weights are on the device at a time: none (no offloading:\n"
            "all of them), model (one part), block (some blocks), leaf (some\n"
            "layers) or sequential (one layer). Default: none",
            [&](const std::string& flag, const std::string& text) {
              o.transformer = o.text = o.vae = mode_named(flag, text);
              stated.transformer = stated.text = stated.vae = true;
            });
  read.text("--offload-text", "HOW", "Memory", "The same for the text encoders only",
            [&](const std::string& flag, const std::string& text) {
              o.text = mode_named(flag, text);
              stated.text = true;
            });
  read.text("--offload-vae", "HOW", "Memory", "The same for the autoencoder only",
            [&](const std::string& flag, const std::string& text) {
              o.vae = mode_named(flag, text);
              stated.vae = true;
            });
}

void add_offload_flags(FlagReader& read, Offload& o, StatedMemory& stated) {
  add_offload_modes(read, o, stated);
  read.text("--offload-group", "N", "Memory", "Blocks per group, copied together. Default: 1",
            [&](const std::string& flag, const std::string& text) {
              o.blocks = int(whole_number(flag, text, 1, 1024));
              stated.blocks = true;
            });
  read.text("--prefetch", "N", "Memory", "Groups to copy ahead, 0 to 64. Default: 1",
            [&](const std::string& flag, const std::string& text) {
              o.prefetch = int(whole_number(flag, text, 0, 64));
              stated.prefetch = true;
            });
  read.text("--resident", "N", "Memory",
            "Groups of the transformer that stay on the device, or all.\n"
            "Default: 0",
            [&](const std::string& flag, const std::string& text) {
              o.resident = text == "all" ? -1 : int(whole_number(flag, text, 0, 100'000));
              stated.resident = true;
            });
  read.text("--residency", "WHICH", "Memory",
            "Which groups stay: strided (spread by bytes and compute, to hide the\n"
            "others' copies) or leading (the first ones). Default: strided",
            [&](const std::string& flag, const std::string& text) {
              o.residency = choice(flag, text, kResidencies);
              stated.residency = true;
            });
  read.text("--pin", "WHEN", "Memory",
            "When to pin host memory: always (fastest copies), on-the-fly\n"
            "(less memory) or never. Unused on a CPU. Default: always",
            [&](const std::string& flag, const std::string& text) {
              o.pin = choice(flag, text, kPins);
              stated.pin = true;
            });
  read.flag("--check-order", "Memory",
            "Follow every copy and use of offloaded weights, and stop with an\n"
            "error at the first that is out of order",
            o.checks_order);
}

void add_disk_flags(FlagReader& read, Offload& o) {
  read.path("--offload-dir", "DIR", "Memory",
            "Keep offloaded weights in files in this folder, not in memory.\n"
            "Later runs and other processes reuse them",
            o.folder);
  read.text("--disk-reads", "HOW", "Memory",
            "How these files are read: direct (bypassing the page cache),\n"
            "mapped (through it) or auto (cached parts through it, the rest\n"
            "bypassing it). Default: auto",
            into(o.reads, one_of(kDiskReads)));
}

bool leaves_bits_open(const Budget& budget) {
  return budget.may_quantize || budget.may_quantize_text;
}

}  // namespace

void add_memory_flags(FlagReader& read, Memory& m, StatedMemory& stated, Bits bits) {
  add_quantize_flags(read, m, stated, bits);
  add_offload_flags(read, m.offload, stated);
  add_disk_flags(read, m.offload);
}

void add_preset_flag(FlagReader& read, Memory& m, const std::string& otherwise) {
  read.text("--preset", "NAME", "Memory",
            "How and where weights are stored, by device: auto (what this\n"
            "GPU needs), none, or a name listed by braid info --presets.\n"
            "Other flags take precedence. Default: " +
                otherwise,
            [&](const std::string&, const std::string& text) {
              if (text != "auto" && text != "none") (void)preset_named(text);
              m.preset = text;
            });
}

void add_budget_flags(FlagReader& read, Memory& m) {
  const auto bytes = [](const std::string& flag, const std::string& text) {
    return std::int64_t(bytes_named(flag, text));
  };
  read.text("--memory", "BYTES", "Memory",
            "Memory budget per device, such as 6GB (6G) or 6GiB (on a CPU: resident\n"
            "memory of this process). Chooses --offload, --prefetch,\n"
            "--resident and --vae-tiling to stay within it and reports the\n"
            "choice; flags that are given are kept",
            [&m, bytes](const std::string& flag, const std::string& text) {
              m.budget.device = bytes(flag, text);
            });
  read.text("--host-memory", "BYTES", "Memory",
            "The same for this process's resident memory; uses files in\n"
            "--offload-dir if needed",
            [&m, bytes](const std::string& flag, const std::string& text) {
              m.budget.host = bytes(flag, text);
            });
}

void check_budget(const Memory& m) {
  const auto& b = m.budget;
  require(
      b.is_set() || !leaves_bits_open(b),
      "--quantize auto needs a memory budget, since it takes 8 bits only if nothing else fits: ",
      "give --memory or --host-memory, too");
}

void add_quantize_flags(FlagReader& read, Memory& m, StatedMemory& stated, Bits bits) {
  const auto form = [bits](const std::string& flag, const std::string& text, bool& may_quantize) {
    may_quantize = text == "auto";
    require(bits == Bits::kMayBeLeftOpen || !may_quantize, flag,
            " auto is for braid generate and braid serve, which can have a memory budget: give ",
            "int8, another form or none here");
    return quantize_named(flag, text);
  };
  const std::string forms =
      "Form of the transformer's weights: none (as stored), int8 (half\n"
      "the memory of bfloat16), int8-v1 (with coarser scales, as older\n"
      "tools write it), int8-dynamic (activations too)";
  const std::string last =
      bits == Bits::kMayBeLeftOpen
          ? ", fp8\n(activations too on GPUs that multiply fp8) or auto (8 bits if\n"
            "a memory budget requires them). Default: none"
          : " or fp8\n(activations too on GPUs that multiply fp8). Default: none";
  read.text("--quantize", "FORM", "Memory", forms + last,
            [&, form](const std::string& flag, const std::string& text) {
              m.quantize = form(flag, text, m.budget.may_quantize);
              stated.quantize = true;
            });
  read.text("--quantize-text", "FORM", "Memory", "The same for the large text encoders",
            [&, form](const std::string& flag, const std::string& text) {
              m.quantize_text = form(flag, text, m.budget.may_quantize_text);
              stated.quantize_text = true;
            });
  read.text("--quantize-skip", "LAYERS", "Memory",
            "Layers of the transformer and ControlNets to leave as they are,\n"
            "separated by commas; * matches one part:\n"
            "img_in,double_blocks.*.img_mod.lin",
            [&](const std::string& flag, const std::string& text) {
              m.keep_dense = patterns(flag, text);
            });
}

}  // namespace braid
