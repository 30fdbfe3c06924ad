#!/bin/sh
# For the leg "highlimit" of the matrix: t/highlimit is a command, without an extension
# for Automake to know it by.
exec "${srcdir:-.}/t/highlimit"
