"""Which unit of an SM executes a machine instruction, by its opcode.

The opcodes are those of NVIDIA's CUDA binary utilities (table of the Hopper instruction set). The pipes follow Nsight
Compute's "inst_executed_pipe_…" metrics, with these differences: what its ADU, CBU and uniform pipes execute is put
together otherwise, loads of constants (LDC, its ADU) and texture instructions (its TEX) count as LSU here, and S2R (its
LSU) as other. Totals of instructions were held to ncu; totals by pipe were not.
"""

from __future__ import annotations

PIPES = ("ALU", "FMA", "FP64", "XU", "LSU", "tensor", "uniform", "branch", "TMA", "other")

_OPCODES = {
    "FMA": "FADD FADD32I FFMA FFMA32I FMUL FMUL32I HADD2 HADD2_32 HFMA2 HMUL2 HFMA2_MMA IMAD IDP IDP4A IMUL "
    "HADD2_32I HFMA2_32I HMUL2_32I IMAD32I IMUL32I VHMNMX VIADD",
    "FP64": "DADD DFMA DMUL DSETP",
    "XU": "MUFU F2F F2I F2IP FRND I2F I2IP POPC FLO BREV",
    "tensor": "HMMA IMMA DMMA BMMA QMMA HGMMA IGMMA QGMMA BGMMA OMMA",
    "LSU": "LD LDG LDS LDL LDC LDSM ST STG STS STL STSM LDGSTS LDGDEPBAR ATOM ATOMG ATOMS RED REDG SHFL MATCH "
    "CCTL CCTLL CCTLT ERRBAR SYNCS FENCE LDTRAM SUATOM SULD SURED SUST TEX TLD TLD4 TMML TXD TXQ TEXS",
    "branch": "BRA BRX BRXU BREAK BSSY BSYNC BMOV CALL EXIT JMP JMX JMXU KILL NANOSLEEP RET RPCMOV RTT WARPSYNC YIELD "
    "BPT WARPGROUP WARPGROUPSET ELECT",
    "TMA": "UBLKCP UBLKPF UBLKRED UTMALDG UTMALST UTMAPF UTMAREDG UTMACCTL UTMACMDFLUSH",
    "other": "BAR MEMBAR DEPBAR NOP S2R CS2R S2UR ACQBULK CGAERRBAR ENDCOLLECTIVE PREEXIT USETMAXREG LEPC GETLMEMBASE "
    "SETLMEMBASE B2R R2B DEPBAR PMTRIG UCGABAR_ARV UCGABAR_WAIT BAR_WAIT CCTL_IVALL SETCTAID",
}
_PIPE = {opcode: pipe for pipe, opcodes in _OPCODES.items() for opcode in opcodes.split()}


def pipe_of(opcode: str) -> str:
    """Return the pipe (one of PIPES) of an opcode with or without modifiers, as "LDG.E.128"; "ALU" for unknown ones."""
    name = opcode.split(".")[0]
    found = _PIPE.get(name)
    if found is not None:
        return found
    if name[0] == "U" or name in ("R2UR", "LDCU", "VOTEU"):
        return "uniform"
    return "ALU"
