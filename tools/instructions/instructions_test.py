"""Tests of instructions.py that need no valgrind: python3 instructions_test.py"""
import unittest

import instructions


class Compare(unittest.TestCase):
    def test_notices_work_that_takes_more(self):
        lines, more = instructions.compare({"gelu": 1030, "swiglu": 1010}, {"gelu": 1000, "swiglu": 1000}, 2)
        self.assertEqual(more, ["gelu"])
        self.assertIn("1.030  more", lines[0])
        self.assertIn("1.010", lines[1])

    def test_takes_less_and_new_work(self):
        lines, more = instructions.compare({"gelu": 500, "new": 7}, {"gelu": 1000, "gone": 9}, 2)
        self.assertEqual(more, [])
        self.assertEqual([line.split()[0] for line in lines], ["gelu", "new", "gone"])

    def test_reads_a_profile(self):
        self.assertEqual(instructions.total_in("events: Ir\nfn=(1)\n0 5\n\ntotals: 411374\n"), 411374)


class Settings(unittest.TestCase):
    def test_limit_libtorch_too(self):
        settings = instructions.settings_of("avx2")
        self.assertEqual(settings["BRAID_ISA"], "avx2")
        self.assertEqual(settings["ATEN_CPU_CAPABILITY"], "avx2")


if __name__ == "__main__":
    unittest.main()
