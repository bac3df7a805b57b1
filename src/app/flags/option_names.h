// What the values of options are called: by flags, in JSON and in a picture's text.
#pragma once

#include "app/flags/flag_values.h"
#include "braid/memory.h"
#include "braid/numbers.h"

namespace braid {

const Choices<Dtype>& dtype_names();
const Choices<Quantize>& quantize_names();  // without "auto", which leaves it to a budget
const Choices<OffloadMode>& offload_names();
const Choices<Residency>& residency_names();
const Choices<Pin>& pin_names();
const Choices<DiskReads>& disk_reads_names();

}  // namespace braid
